// SPDX-License-Identifier: Apache-2.0
#include "weft/collective/reduce.h"

#include <vector>

#include "gtest/gtest.h"

namespace weft::collective {
namespace {

// `size` elements that lie `offset` elements behind the begin of their buffer.
Tensor Values(int64_t size, int64_t offset, float factor) {
  Tensor all = *Tensor::Allocate(DType::kFloat, Shape{offset + size});
  for (int64_t i = 0; i < size; ++i)
    all.data<float>()[offset + i] = factor * static_cast<float>(i % 1000);
  return all.SliceRows(offset, offset + size);
}

// Small ones go through the caches, large ones past them; results begin anywhere.
TEST(ReduceTest, SumsAndMeansAreExactAtAnySizeAndPlace) {
  ThreadPool pool("test", 2);
  for (const int64_t size : {int64_t{1}, int64_t{4099}, int64_t{2} << 20 | 5}) {
    for (const int64_t offset : {0, 1, 3}) {
      const std::vector<Tensor> terms = {Values(size, 0, 1), Values(size, offset, 2),
                                         Values(size, 2, 5)};
      Tensor whole = *Tensor::Zeros(DType::kFloat, Shape{size + 8});
      Tensor out = whole.SliceRows(offset, offset + size);
      ASSERT_TRUE(ReduceInto(ReductionOp::kSum, terms, /*divisor=*/4, &pool, &out).ok());
      Tensor copy = *Tensor::Zeros(DType::kFloat, Shape{size + 8});
      Tensor place = copy.SliceRows(offset + 1, offset + 1 + size);
      CopyInto(out, &pool, &place);
      for (int64_t i = 0; i < size; ++i) {
        ASSERT_EQ(out.data<float>()[i], 2 * static_cast<float>(i % 1000)) << size << " " << i;
        ASSERT_EQ(place.data<float>()[i], out.data<float>()[i]) << size << " " << i;
      }
      // Nothing around it was touched.
      EXPECT_EQ(whole.data<float>()[offset + size], 0);
      EXPECT_EQ(copy.data<float>()[offset], 0);
      EXPECT_EQ(copy.data<float>()[offset + 1 + size], 0);
    }
  }
}

TEST(ReduceTest, OneOfTwoTermsMayBeTheResult) {
  const std::vector<Tensor> terms = {Values(10000, 0, 3), Values(10000, 0, 1)};
  Tensor out = terms[1];
  ASSERT_TRUE(ReduceInto(ReductionOp::kSum, terms, /*divisor=*/1, nullptr, &out).ok());
  for (int64_t i = 0; i < 10000; ++i) ASSERT_EQ(out.data<float>()[i], 4 * (i % 1000));
}

}  // namespace
}  // namespace weft::collective
