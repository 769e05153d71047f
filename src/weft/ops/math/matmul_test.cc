// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

TEST(MatMulTest, EachTransposition) {
  const Tensor a = Make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = Make<float>({3, 2}, {1, 0, 2, 1, 0, 3});
  ExpectNear<float>(RunOne("MatMul", {a, b}), {5, 11, 14, 23});
  ExpectNear<float>(RunOne("MatMul", {a, a}, {{"transpose_b", true}}), {14, 32, 32, 77});
  ExpectNear<float>(RunOne("MatMul", {a, a}, {{"transpose_a", true}}),
                    {17, 22, 27, 22, 29, 36, 27, 36, 45});
  ExpectNear<float>(RunOne("MatMul", {a, b}, {{"transpose_a", true}, {"transpose_b", true}}),
                    {1, 6, 12, 2, 9, 15, 3, 12, 18});
}

TEST(MatMulTest, EmptyMatrices) {
  EXPECT_EQ(RunOne("MatMul", {Make<float>({0, 3}, {}), Fill<float>({3, 2}, 0, 1)}).shape(),
            (Shape{0, 2}));
  ExpectNear<float>(RunOne("MatMul", {Make<float>({2, 0}, {}), Make<float>({0, 2}, {})}),
                    {0, 0, 0, 0});
}

TEST(MatMulTest, LargeProductsAgreeWithTheirParts) {
  const Tensor a = Fill<float>({300, 200}, -1, 1, 1);
  const Tensor b = Fill<float>({200, 150}, -1, 1, 2);
  const Tensor c = RunOne("MatMul", {a, b});
  for (int64_t i : {0, 7, 150, 299}) {
    for (int64_t j : {0, 31, 149}) {
      double sum = 0;
      for (int64_t l = 0; l < 200; ++l)
        sum += double{a.data<float>()[i * 200 + l]} * b.data<float>()[l * 150 + j];
      EXPECT_NEAR(c.data<float>()[i * 150 + j], sum, 1e-4);
    }
  }
}

TEST(MatMulTest, SaysWhichShapesDoNotFit) {
  const Tensor a = Fill<float>({2, 3}, 0, 1);
  EXPECT_EQ(ErrorOf("MatMul", {a, a}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ErrorOf("MatMul", {a, Tensor::Scalar<float>(1)}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ArgMaxTest, FirstOfEqualsAndNeverNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor in = Make<float>({2, 3}, {1, 5, 5, nan, 2, 1});
  ExpectNear<int64_t>(RunOne("ArgMax", {in, Tensor::Scalar<int32_t>(1)}), {1, 1});
  ExpectNear<int64_t>(RunOne("ArgMin", {in, Tensor::Scalar<int32_t>(-1)}), {0, 2});
  ExpectNear<int32_t>(
      RunOne("ArgMax", {in, Tensor::Scalar<int32_t>(0)}, {{"output_type", DType::kInt32}}),
      {0, 0, 0});
  EXPECT_FALSE(ErrorOf("ArgMax", {in, Tensor::Scalar<int32_t>(2)}).ok());
  EXPECT_THAT(
      std::string(
          ErrorOf("ArgMax", {Make<float>({0, 2}, {}), Tensor::Scalar<int32_t>(0)}).message()),
      ::testing::HasSubstr("Reduction axis 0 is empty in shape [0,2]"));
}

}  // namespace
}  // namespace weft::ops::testing
