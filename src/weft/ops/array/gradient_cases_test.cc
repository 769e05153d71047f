// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/gradient_cases_test.h"

#include "absl/strings/match.h"

#include "weft/ops/testing/tensors_test.h"

namespace weft::ops::testing {
namespace {

using Cases = std::vector<GradientCase>;

Tensor Matrix(const Shape& shape, const std::vector<int32_t>& values) {
  return Make<int32_t>(shape, values);
}

void AddShapes(Cases& cases) {
  for (const char* op : {"Identity", "Snapshot", "PlaceholderWithDefault", "DebugGradientIdentity",
                         "GuaranteeConst", "EnsureShape", "CheckNumerics", "CheckNumericsV2"}) {
    AttrMap attrs;
    if (std::string(op) == "PlaceholderWithDefault" || std::string(op) == "EnsureShape") {
      attrs = {{"shape", Shape{2, 3}}};
    }
    if (absl::StartsWith(op, "CheckNumerics")) attrs = {{"message", "finite"}};
    cases.push_back({op, {Doubles({2, 3})}, attrs});
  }
  cases.push_back({"Print",
                   {Doubles({2}), std::vector<Tensor>{}},
                   {{"U", AttrValue::TypeList{}}, {"first_n", 0}}});
  cases.push_back({"IdentityN", {std::vector<Tensor>{Doubles({2}), Doubles({3}, 2)}}, {}, 2});
  cases.push_back({"Reshape", {Doubles({2, 6}), I({3, -1})}});
  cases.push_back({"ExpandDims", {Doubles({2, 3}), I(1)}});
  cases.push_back({"Squeeze", {Doubles({2, 1, 3})}, {{"squeeze_dims", AttrValue::IntList{1}}}});
  cases.push_back({"Fill", {I({2, 3}), Doubles({})}});
  cases.push_back({"BroadcastTo", {Doubles({3, 1}), I({2, 3, 4})}});
  cases.push_back({"Tile", {Doubles({2, 3}), I({2, 3})}});
  cases.push_back({"Transpose", {Doubles({2, 3, 4}), I({2, 0, 1})}});
  cases.push_back({"ConjugateTranspose", {Doubles({2, 3}), I({1, 0})}});
}

void AddJoins(Cases& cases) {
  const std::vector<Tensor> parts = {Doubles({2, 3}), Doubles({2, 1}, 2), Doubles({2, 2}, 3)};
  cases.push_back({"ConcatV2", {parts, I(1)}, {}, 3});
  cases.push_back({"Concat", {I(1), parts}, {}, 3});
  cases.push_back(
      {"Pack", {std::vector<Tensor>{Doubles({2, 3}), Doubles({2, 3}, 2)}}, {{"axis", 1}}, 2});
  cases.push_back({"ParallelConcat",
                   {std::vector<Tensor>{Doubles({1, 3}), Doubles({1, 3}, 2)}},
                   {{"shape", Shape{2, 3}}},
                   2});
  cases.push_back({"Unpack", {Doubles({2, 3})}, {{"num", 3}, {"axis", 1}}});
  cases.push_back({"Split", {I(1), Doubles({2, 6})}, {{"num_split", 3}}});
  cases.push_back({"SplitV", {Doubles({2, 6}), I({1, 2, 3}), I(1)}, {{"num_split", 3}}});
  const std::vector<Tensor> indices = {I({0, 2}), I({1, 3})};
  const std::vector<Tensor> rows = {Doubles({2, 2}), Doubles({2, 2}, 2)};
  cases.push_back({"DynamicStitch", {indices, rows}, {}, 2});
  cases.push_back({"ParallelDynamicStitch", {indices, rows}, {}, 2});
  cases.push_back(
      {"DynamicPartition", {Doubles({4, 2}), I({0, 1, 0, 1})}, {{"num_partitions", 2}}});
}

void AddParts(Cases& cases) {
  cases.push_back({"Slice", {Doubles({3, 4}), I({1, 0}), I({2, 3})}});
  cases.push_back({"StridedSlice", {Doubles({4, 5}), I({0, 4}), I({4, 0}), I({2, -2})}});
  cases.push_back({"StridedSlice",
                   {Doubles({4, 5}), I({1, 0}), I({2, 3}), I({1, 1})},
                   {{"shrink_axis_mask", 1}, {"end_mask", 2}},
                   1,
                   "masks"});
  cases.push_back(
      {"StridedSliceGrad", {I({4, 5}), I({0, 1}), I({4, 4}), I({2, 1}), Doubles({2, 3})}});
  cases.push_back(
      {"TensorStridedSliceUpdate", {Doubles({4}), I({1}), I({3}), I({1}), Doubles({2}, 2)}, {}, 2});
  cases.push_back({"TensorStridedSliceUpdate",
                   {Doubles({4}), I({1}), I({3}), I({1}), Doubles({}, 2)},
                   {},
                   2,
                   "broadcast"});
  cases.push_back({"Pad", {Doubles({2, 3}), Matrix({2, 2}, {1, 0, 2, 1})}});
  cases.push_back({"PadV2", {Doubles({2, 3}), Matrix({2, 2}, {1, 0, 2, 1}), Doubles({}, 2)}});
  for (const char* mode : {"REFLECT", "SYMMETRIC"}) {
    cases.push_back(
        {"MirrorPad", {Doubles({3, 3}), Matrix({2, 2}, {1, 2, 2, 0})}, {{"mode", mode}}});
    cases.push_back(
        {"MirrorPadGrad", {Doubles({6, 5}), Matrix({2, 2}, {1, 2, 2, 0})}, {{"mode", mode}}});
  }
  Tensor flags = *Tensor::Zeros(DType::kBool, Shape{2});
  flags.data<bool>()[1] = true;
  cases.push_back({"ReverseV2", {Doubles({2, 3}), I({1})}});
  cases.push_back({"Reverse", {Doubles({2, 3}), flags}});
  cases.push_back(
      {"ReverseSequence", {Doubles({2, 4}), I({3, 2})}, {{"seq_dim", 1}, {"batch_dim", 0}}});
  cases.push_back({"Roll", {Doubles({5}), I(2), I(0)}});
}

void AddGathers(Cases& cases) {
  cases.push_back({"Gather", {Doubles({4, 2}), I({3, 1, 3})}});
  cases.push_back({"GatherV2", {Doubles({4, 2}), I({3, 1, 3}), I(0)}});
  cases.push_back(
      {"GatherV2", {Doubles({2, 4}), Matrix({2, 2}, {3, 1, 0, 3}), I(1)}, {}, 1, "columns"});
  cases.push_back({"GatherV2",
                   {Doubles({2, 4}), Matrix({2, 2}, {3, 1, 0, 3}), I(1)},
                   {{"batch_dims", 1}},
                   1,
                   "batches"});
  cases.push_back({"GatherNd", {Doubles({3, 4}), Matrix({3, 2}, {0, 1, 2, 3, 0, 1})}});
  const Tensor places = Matrix({2, 1}, {3, 1});
  cases.push_back({"ScatterNd", {places, Doubles({2, 2}), I({5, 2})}});
  for (const char* op : {"TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub",
                         "TensorScatterMin", "TensorScatterMax", "ScatterNdNonAliasingAdd"}) {
    cases.push_back({op, {Doubles({5, 2}), places, Doubles({2, 2}, 2)}, {}, 2});
  }
}

void AddBlocks(Cases& cases) {
  const Tensor pads = Matrix({2, 2}, {1, 1, 0, 2});
  cases.push_back({"SpaceToBatchND", {Doubles({1, 4, 4, 2}), I({2, 3}), pads}});
  cases.push_back(
      {"BatchToSpaceND", {Doubles({6, 2, 2, 1}), I({2, 3}), Matrix({2, 2}, {1, 0, 2, 1})}});
  cases.push_back({"SpaceToBatch", {Doubles({1, 4, 4, 2}), pads}, {{"block_size", 2}}});
  cases.push_back(
      {"BatchToSpace", {Doubles({4, 2, 2, 1}), Matrix({2, 2}, {1, 0, 0, 1})}, {{"block_size", 2}}});
  cases.push_back({"SpaceToDepth", {Doubles({1, 4, 2, 3})}, {{"block_size", 2}}});
  cases.push_back({"DepthToSpace", {Doubles({1, 2, 1, 8})}, {{"block_size", 2}}});
}

void AddDiagonals(Cases& cases) {
  cases.push_back({"Diag", {Doubles({2, 3})}});
  cases.push_back({"DiagPart", {Doubles({2, 3, 2, 3})}});
  cases.push_back({"MatrixBandPart", {Doubles({2, 3, 4}), I(1), I(0)}});
  cases.push_back({"MatrixDiag", {Doubles({2, 3})}});
  cases.push_back({"MatrixDiagPart", {Doubles({2, 3, 4})}});
  cases.push_back({"MatrixSetDiag", {Doubles({2, 3, 4}), Doubles({2, 3}, 2)}, {}, 2});
  const Tensor bounds = I({-1, 1});
  for (const char* form : {"V2", "V3"}) {
    cases.push_back({absl::StrCat("MatrixDiag", form),
                     {Doubles({2, 3, 3}), bounds, I(3), I(4), Doubles({}, 2)},
                     {},
                     2});
    cases.push_back(
        {absl::StrCat("MatrixDiagPart", form), {Doubles({2, 3, 4}), bounds, Doubles({}, 2)}});
    cases.push_back({absl::StrCat("MatrixSetDiag", form),
                     {Doubles({2, 3, 4}), Doubles({2, 3, 3}, 2), bounds},
                     {},
                     2});
  }
}

}  // namespace

std::vector<GradientCase> ArrayGradientCases() {
  Cases cases;
  AddShapes(cases);
  AddJoins(cases);
  AddParts(cases);
  AddGathers(cases);
  AddDiagonals(cases);
  AddBlocks(cases);
  return cases;
}

}  // namespace weft::ops::testing
