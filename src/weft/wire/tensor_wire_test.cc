// SPDX-License-Identifier: Apache-2.0
#include "weft/wire/tensor_wire.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "proto/tensorflow/tensor.pb.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::wire {
namespace {

using ::testing::HasSubstr;

StatusOr<NamedTensor> Read(const std::string& bytes, size_t chunk_size = 7) {
  std::vector<absl::string_view> chunks;
  for (size_t at = 0; at < bytes.size(); at += chunk_size) {
    chunks.push_back(absl::string_view(bytes).substr(at, chunk_size));
  }
  ChunkStream stream(chunks);
  google::protobuf::io::CodedInputStream in(&stream);
  return ReadNamedTensor(&in, static_cast<int>(bytes.size()));
}

std::string Named(const std::string& name, const Tensor& tensor) {
  tensorflow::NamedTensorProto proto;
  proto.set_name(name);
  EXPECT_TRUE(TensorToProto(tensor, proto.mutable_tensor()).ok());
  return proto.SerializeAsString();
}

TEST(TensorWire, WritesWhatProtobufReads) {
  StatusOr<Tensor> big = Tensor::Zeros(DType::kFloat, Shape{3000, 2});
  ASSERT_TRUE(big.ok());
  big->data<float>()[5999] = 7;
  for (const Tensor& tensor : {*big, Tensor::Scalar<float>(1.5), Tensor::Vector<int64_t>({1, 2, 3}),
                               Tensor::Scalar("text"), Tensor::Vector<bool>({true, false}),
                               *Tensor::Zeros(DType::kDouble, Shape{0, 3})}) {
    Payload payload;
    ASSERT_TRUE(AppendNamedTensor(1, "x:0", tensor, &payload).ok());
    AppendVarint(2, 300, &payload);
    // RunStepResponse has the same shape: repeated NamedTensorProto in field 1.
    std::string bytes = payload.Flatten();
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                              static_cast<int>(bytes.size()));
    EXPECT_EQ(in.ReadTag(), (1u << 3) | 2);
    uint32_t size = 0;
    ASSERT_TRUE(in.ReadVarint32(&size));
    std::string inner;
    ASSERT_TRUE(in.ReadString(&inner, static_cast<int>(size)));
    tensorflow::NamedTensorProto proto;
    ASSERT_TRUE(proto.ParseFromString(inner));
    EXPECT_EQ(proto.name(), "x:0");
    StatusOr<Tensor> back = TensorFromProto(proto.tensor());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->ToString(), tensor.ToString());
    uint32_t value = 0;
    EXPECT_EQ(in.ReadTag(), 2u << 3);
    ASSERT_TRUE(in.ReadVarint32(&value));
    EXPECT_EQ(value, 300u);
  }
}

TEST(TensorWire, LargeTensorsAreNotCopied) {
  StatusOr<Tensor> big = Tensor::Zeros(DType::kFloat, Shape{1 << 20});
  Payload payload;
  ASSERT_TRUE(AppendTensor(4, *big, &payload).ok());
  ASSERT_EQ(payload.pieces().size(), 2u);
  EXPECT_EQ(payload.pieces()[1].data, big->bytes());
  EXPECT_FALSE(big->HasOneRef());
}

TEST(TensorWire, ReadsBothForms) {
  const Tensor values = Tensor::Vector<float>({1, 2, 3});
  StatusOr<NamedTensor> flat = Read(Named("a", values));
  ASSERT_TRUE(flat.ok()) << flat.status();
  EXPECT_EQ(flat->name, "a");
  EXPECT_EQ(flat->tensor.ToString(), values.ToString());

  tensorflow::NamedTensorProto repeated;
  repeated.set_name("b");
  repeated.mutable_tensor()->set_dtype(tensorflow::DT_FLOAT);
  repeated.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(3);
  repeated.mutable_tensor()->add_float_val(4);
  EXPECT_EQ(Read(repeated.SerializeAsString())->tensor.ToString(),
            Tensor::Vector<float>({4, 4, 4}).ToString());
  EXPECT_EQ(Read(Named("c", Tensor::Vector<std::string>({"x", ""})))->tensor.num_elements(), 2);
  EXPECT_EQ(Read(Named("d", Tensor::Scalar<bool>(true)))->tensor.scalar<bool>(), true);
  EXPECT_EQ(Read(Named("e", *Tensor::Zeros(DType::kFloat, Shape{0})))->tensor.num_elements(), 0);
}

TEST(TensorWire, RefusesMalformedTensors) {
  tensorflow::NamedTensorProto proto;
  EXPECT_FALSE(Read(proto.SerializeAsString()).ok());
  proto.set_name("x");
  proto.mutable_tensor()->set_dtype(tensorflow::DT_FLOAT);
  proto.mutable_tensor()->mutable_tensor_shape()->add_dim()->set_size(3);
  proto.mutable_tensor()->set_tensor_content("short");
  EXPECT_THAT(std::string(Read(proto.SerializeAsString()).status().message()),
              HasSubstr("wrong size"));
  proto.mutable_tensor()->mutable_tensor_shape()->mutable_dim(0)->set_size(int64_t{1} << 62);
  EXPECT_FALSE(Read(proto.SerializeAsString()).ok());
  proto.mutable_tensor()->mutable_tensor_shape()->mutable_dim(0)->set_size(-1);
  EXPECT_FALSE(Read(proto.SerializeAsString()).ok());
  const std::string good = Named("a", Tensor::Vector<float>({1, 2, 3}));
  for (size_t cut = 1; cut < good.size(); ++cut) {
    EXPECT_FALSE(Read(good.substr(0, cut)).ok()) << cut;
  }
}

}  // namespace
}  // namespace weft::wire
