// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/gradient_cases_test.h"

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

using Cases = std::vector<GradientCase>;

Tensor L(std::initializer_list<int64_t> values) { return Tensor::Vector<int64_t>(values); }
// Four positions of a [3, 4] tensor, the first two out of order.
Tensor Unordered() { return Make<int64_t>({4, 2}, std::vector<int64_t>{1, 2, 0, 3, 1, 3, 2, 0}); }
Tensor Ordered() { return Make<int64_t>({3, 2}, std::vector<int64_t>{0, 1, 0, 3, 2, 0}); }

void AddProducts(Cases& cases) {
  for (const bool adjoint_a : {false, true}) {
    for (const bool adjoint_b : {false, true}) {
      const int64_t inner = adjoint_a ? 3 : 4;
      const Shape dense = adjoint_b ? Shape{2, inner} : Shape{inner, 2};
      cases.push_back({"SparseTensorDenseMatMul",
                       {Unordered(), Doubles({4}), L({3, 4}), Doubles(dense, 2)},
                       {{"adjoint_a", adjoint_a}, {"adjoint_b", adjoint_b}},
                       2,
                       absl::StrCat("adjoint ", adjoint_a, adjoint_b)});
    }
  }
}

void AddArithmetic(Cases& cases) {
  const Tensor others = Make<int64_t>({3, 2}, std::vector<int64_t>{0, 1, 1, 0, 2, 2});
  cases.push_back(
      {"SparseAdd",
       {Ordered(), Doubles({3}), L({3, 4}), others, Doubles({3}, 2), L({3, 4}), Doubles({}, 3)},
       {},
       2,
       "one place in both"});
  cases.push_back(
      {"SparseTensorDenseAdd", {Ordered(), Doubles({3}), L({3, 4}), Doubles({3, 4}, 2)}, {}, 2});
  for (const bool keep_dims : {false, true}) {
    for (const int32_t axis : {0, -1}) {
      cases.push_back({"SparseReduceSum",
                       {Unordered(), Doubles({4}), L({3, 4}), Tensor::Vector<int32_t>({axis})},
                       {{"keep_dims", keep_dims}},
                       1,
                       absl::StrCat("over ", axis, keep_dims ? ", kept" : "")});
    }
  }
  cases.push_back({"SparseSoftmax", {Ordered(), Doubles({3}), L({3, 4})}});
  for (const char* op : {"SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv"}) {
    for (const Shape& dense : {Shape{3, 4}, Shape{4}, Shape{3, 1}}) {
      cases.push_back({op,
                       {Ordered(), Doubles({3}), L({3, 4}), Fill<double>(dense, 1, 2, 2)},
                       {},
                       2,
                       dense.ToString()});
    }
  }
}

void AddRagged(Cases& cases) {
  const std::vector<Tensor> rows = {L({0, 2, 2, 5})};
  const std::vector<Tensor> rows_of_rows = {L({0, 1, 3}), L({0, 2, 2, 5})};
  cases.push_back({"RaggedTensorToSparse", {rows, Doubles({5, 2})}});
  cases.push_back({"RaggedGather",
                   {rows, Doubles({5, 2}), L({2, 0, 2})},
                   {{"OUTPUT_RAGGED_RANK", 1}},
                   1,
                   "rows"});
  cases.push_back({"RaggedGather",
                   {rows_of_rows, Doubles({5}), L({1, 1})},
                   {{"OUTPUT_RAGGED_RANK", 2}},
                   1,
                   "rows of rows"});
  const AttrMap splits = {{"row_partition_types", AttrValue::StringList{"ROW_SPLITS"}}};
  cases.push_back({"RaggedTensorToTensor",
                   {Tensor::Scalar<int64_t>(-1), Doubles({5}), Doubles({}, 2), rows},
                   splits,
                   2,
                   "numbers"});
  cases.push_back({"RaggedTensorToTensor",
                   {L({4, 2, 2}), Doubles({5, 2}), Doubles({2}, 2), rows},
                   splits,
                   2,
                   "vectors, cut and filled up"});
  cases.push_back(
      {"RaggedTensorToTensor",
       {Tensor::Scalar<int64_t>(-1), Doubles({5, 2}), Doubles({}, 2),
        std::vector<Tensor>{Tensor::Scalar<int64_t>(4), L({0, 0, 2, 2, 2})}},
       {{"row_partition_types", AttrValue::StringList{"FIRST_DIM_SIZE", "VALUE_ROWIDS"}}},
       2,
       "row ids"});
}

}  // namespace

std::vector<GradientCase> SparseGradientCases() {
  Cases cases;
  AddRagged(cases);
  AddProducts(cases);
  AddArithmetic(cases);
  cases.push_back({"SparseReorder", {Unordered(), Doubles({4}), L({3, 4})}});
  cases.push_back({"SparseFillEmptyRows",
                   {Ordered(), Doubles({3}), L({4, 4}), Doubles({}, 2)},
                   {},
                   2,
                   "rows 1 and 3"});
  cases.push_back({"RaggedFillEmptyRows",
                   {L({0, 0, 2}), Doubles({3}), Tensor::Scalar<int64_t>(4), Doubles({}, 2)},
                   {},
                   2,
                   "rows 1 and 3"});
  cases.push_back({"SparseToDense", {Ordered(), L({3, 4}), Doubles({3}), Doubles({}, 2)}, {}, 2});
  cases.push_back(
      {"SparseToDense", {L({0, 2}), L({4}), Doubles({2}), Doubles({}, 2)}, {}, 2, "a vector"});
  cases.push_back({"SparseSlice", {Ordered(), Doubles({3}), L({3, 4}), L({0, 1}), L({2, 3})}});
  return cases;
}

}  // namespace weft::ops::testing
