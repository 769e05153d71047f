// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/tensor_frame.h"

#include <gtest/gtest.h>

namespace weft::wire {
namespace {

TEST(TensorFrameTest, RoundTrips) {
  RendezvousKey key;
  key.number = 3;
  key.frame = 5;
  key.iteration = 6;
  for (const Tensor& tensor : {Tensor::Vector<float>({1, 2}), Tensor::Scalar("text"),
                               *Tensor::Zeros(DType::kInt64, Shape{0, 4})}) {
    StatusOr<TensorFrame> frame = MakeTensorFrame(1, key, tensor, false);
    ASSERT_TRUE(frame.ok()) << frame.status();
    const transport::Region body = frame->body.empty() ? transport::Region() : frame->body[0];
    StatusOr<TensorMeta> meta = TensorMeta::Parse(frame->meta, body.size);
    ASSERT_TRUE(meta.ok()) << meta.status();
    EXPECT_EQ(meta->iteration, 6);
    EXPECT_EQ(TensorFromBody(*meta, body)->ToString(), tensor.ToString());
  }
  StatusOr<TensorFrame> dead = MakeTensorFrame(1, key, Tensor(), true);
  EXPECT_TRUE(TensorMeta::Parse(dead->meta, 0)->is_dead);
}

TEST(TensorFrameTest, SharesBytesAndRefusesNonsense) {
  StatusOr<Tensor> tensor = Tensor::Zeros(DType::kFloat, Shape{1000});
  RendezvousKey key;
  key.number = 0;
  StatusOr<TensorFrame> frame = MakeTensorFrame(1, key, *tensor, false);
  EXPECT_EQ(frame->body[0].data, tensor->bytes());
  EXPECT_FALSE(tensor->HasOneRef());
  EXPECT_FALSE(TensorMeta::Parse(frame->meta, 3999).ok());
  EXPECT_FALSE(TensorMeta::Parse(frame->meta.substr(1), 4000).ok());
  EXPECT_FALSE(TensorMeta::Parse("", 0).ok());
  EXPECT_FALSE(MakeTensorFrame(1, RendezvousKey(), *tensor, false).ok());
}

}  // namespace
}  // namespace weft::wire
