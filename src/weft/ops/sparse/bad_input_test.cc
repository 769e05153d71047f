// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/ops/control/tensor_array_kernel.h"
#include "weft/ops/testing/tensors_test.h"
#include "weft/tensor/pool_allocator.h"

namespace weft::ops::testing {
namespace {

TEST(SetOperationTest, ManyGroupsOfNothingTakeNoTime) {
  const Tensor empty = Tensor::FromSpan<int32_t>(Shape{int64_t{1} << 50, 0}, {});
  const StatusOr<std::vector<Tensor>> outputs =
      RunOp("DenseToDenseSetOperation", {empty, empty}, {{"set_operation", "union"}});
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_EQ((*outputs)[0].shape(), (Shape{0, 2}));
  EXPECT_THAT((*outputs)[2].span<int64_t>(), ::testing::ElementsAre(int64_t{1} << 50, 0));
}

TEST(SparseAddGradTest, IndicesMustBeMatrices) {
  const Tensor indices = Tensor::FromSpan<int64_t>(Shape{1, 1}, {0});
  const Tensor gradient = Tensor::Vector<float>({1});
  EXPECT_TRUE(RunOp("SparseAddGrad", {gradient, indices, indices, indices}).ok());
  const Tensor wrong = Tensor::Scalar<int64_t>(0);
  EXPECT_TRUE(absl::IsInvalidArgument(
      RunOp("SparseAddGrad", {gradient, indices, indices, wrong}).status()));
}

// Matrices for which no decomposition ends: a result or an error, never the end of the process.
TEST(MatrixTest, NumbersThatHaveNoDecomposition) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e300}) {
    Tensor matrix = *Tensor::Zeros(DType::kComplex128, Shape{4, 4});
    for (int64_t i = 0; i < 16; ++i) matrix.data<Complex128>()[i] = {bad, -bad};
    for (const char* op :
         {"MatrixLogarithm", "MatrixSquareRoot", "MatrixExponential", "MatrixInverse",
          "MatrixDeterminant", "Cholesky", "SelfAdjointEigV2", "Qr", "Svd", "Lu"}) {
      SCOPED_TRACE(op);
      RunOp(op, {matrix}).status().IgnoreError();
    }
    RunOp("Eig", {matrix}, {{"Tout", DType::kComplex128}}).status().IgnoreError();
    RunOp("MatrixSolve", {matrix, matrix}).status().IgnoreError();
  }
  Tensor none = *Tensor::Zeros(DType::kComplex64, Shape{4, 4});
  for (Complex64& number : none.mutable_span<Complex64>()) {
    number = {std::numeric_limits<float>::quiet_NaN(), 0};
  }
  EXPECT_THAT(std::string(ErrorOf("MatrixLogarithm", {none}).message()),
              ::testing::HasSubstr("Schur decomposition was not successful"));
}

// Sizes that an input names and no memory holds: an error, or nothing to do, never the end of the
// process. Other ops than sparse ones too.
using control::TensorArray;

constexpr int64_t kHuge = int64_t{1} << 45;

Ref<TensorArray> ArrayOf(TensorArray::Options options, int64_t size) {
  options.dtype = DType::kFloat;
  return MakeRef<TensorArray>("array", options, size);
}

TEST(HugeSizesTest, ATensorArrayHasAnyIndexForThePriceOfItsElements) {
  const Ref<TensorArray> array = ArrayOf({.dynamic_size = true}, 1);
  EXPECT_TRUE(array->Write(2147483646, Tensor::Scalar(1.0f)).ok());
  EXPECT_EQ(*array->size(), 2147483647);
  EXPECT_EQ(array->Read(2147483646)->scalar<float>(), 1);
  EXPECT_TRUE(absl::IsInvalidArgument(array->Read(5).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(array->CheckRoom(kHuge)));
  EXPECT_TRUE(array->CheckRoom(1000).ok());
  const Ref<TensorArray> fixed = ArrayOf({}, 2147483647);
  EXPECT_TRUE(absl::IsInvalidArgument(fixed->Write(2147483647, Tensor::Scalar(1.0f))));
  EXPECT_TRUE(fixed->Write(2147483646, Tensor::Scalar(1.0f)).ok());
  EXPECT_EQ(*(*fixed->MakeGradient("gradient", Shape()))->size(), 2147483647);
}

TEST(HugeSizesTest, RowsThatADenseShapeNames) {
  const Tensor none = Make<int64_t>({0, 2}, {}), shape = Make<int64_t>({2}, {kHuge, 1});
  EXPECT_TRUE(absl::IsResourceExhausted(
      ErrorOf("SparseFillEmptyRows", {none, Make<float>({0}, {}), shape, Tensor::Scalar(0.0f)})));
  EXPECT_TRUE(absl::IsInvalidArgument(
      ErrorOf("SparseFillEmptyRows",
              {none, Make<float>({0}, {}), Make<int64_t>({2}, {-5, 1}), Tensor::Scalar(0.0f)})));
  EXPECT_TRUE(absl::IsResourceExhausted(
      ErrorOf("SparseSegmentMeanGrad",
              {Make<float>({kHuge, 0}, {}), Ints({}), Ints({}), Tensor::Scalar<int32_t>(1)})));
  EXPECT_TRUE(absl::IsResourceExhausted(
      ErrorOf("UniqueV2", {Make<float>({kHuge, 0}, {}), Make<int64_t>({1}, {0})})));
}

TEST(HugeSizesTest, RowsOrPlanesWithoutAnElementCostNothing) {
  const Tensor logits = Make<Bfloat16>({0, kHuge}, {});
  EXPECT_EQ(RunOne("Softmax", {logits}).dim(1), kHuge);
  EXPECT_TRUE(RunOp("SparseSoftmaxCrossEntropyWithLogits", {logits, Ints({})}).ok());
  EXPECT_TRUE(RunOp("NthElement", {Make<float>({0, kHuge}, {}), Tensor::Scalar<int32_t>(3)}).ok());
  EXPECT_TRUE(RunOp("TopKV2", {Make<float>({0, kHuge}, {}), Tensor::Scalar<int32_t>(2)}).ok());
}

TEST(HugeSizesTest, OutputsBeyondTheLimitAreAnError) {
  const size_t limit = HostMemoryLimit();
  SetHostMemoryLimit(HostPoolStatistics().bytes_in_use + (size_t{32} << 20));
  const Status refused = ErrorOf("Fill", {Ints({64 << 20}), Tensor::Scalar(1.0f)});
  SetHostMemoryLimit(limit);
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(RunOne("Fill", {Ints({4}), Tensor::Scalar(1.0f)}).num_elements(), 4);
}

}  // namespace
}  // namespace weft::ops::testing
