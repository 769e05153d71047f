// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/columns/column_call.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {
namespace {

constexpr int64_t kSmallestPartBytes = int64_t{64} << 20;

bool IsWhole(DType dtype) {
  return dtype == DType::kInt64 || dtype == DType::kInt32 || dtype == DType::kInt16 ||
         dtype == DType::kInt8;
}

// Column `axis` of indices [n, rank].
Endpoint ColumnOf(GraphBuilder& b, Endpoint indices, int64_t axis) {
  return ReshapeTo(b, SliceLast(b, indices, axis, 1), {-1});
}

// Rows whose length is above `most` shortened to it.
Endpoint Shortened(GraphBuilder& b, Endpoint rows, double most) {
  const Endpoint squares = Reduce(b, "Sum", b.Op("Mul", {rows, rows}), {-1}, /*keep=*/true);
  const Endpoint zero = b.Op("ZerosLike", {squares}), one = b.Op("OnesLike", {squares});
  const Endpoint has_length = b.Op("Greater", {squares, zero});
  const Endpoint safe = b.Op("SelectV2", {has_length, squares, one});
  const Endpoint lengths = b.Op("SelectV2", {has_length, b.Op("Sqrt", {safe}), squares});
  const Endpoint limit = NumberLike(b, rows, most);
  return b.Op("RealDiv", {b.Op("Mul", {rows, limit}), b.Op("Maximum", {lengths, limit})});
}

}  // namespace

void ColumnCall::Fail(const std::string& column, const std::string& what) const {
  b().Fail(InvalidArgument("Feature column '", column, "': ", what));
}

Feature ColumnCall::FeatureOf(const std::string& key) const {
  const auto found = features_.find(key);
  if (found == features_.end()) {
    const std::string there = absl::StrJoin(
        features_, ", ", [](std::string* out, const auto& f) { absl::StrAppend(out, f.first); });
    b().Fail(InvalidArgument("Feature '", key, "' is not in the input, which has ",
                             there.empty() ? "none" : there));
    return {};
  }
  Feature feature = found->second;
  if (feature.is_sparse() || !feature.values) return feature;
  const PartialShape shape = b().ShapeOf(feature.values);
  if (!shape.known_rank() || shape.rank() == 0) {
    b().Fail(InvalidArgument("Feature '", key, "' has shape ", shape.ToString(),
                             ", expected [batch] or [batch, ...]"));
    return {};
  }
  if (shape.rank() == 1) feature.values = ExpandDim(b(), feature.values, -1);
  return feature;
}

Feature ColumnCall::SparseOf(const std::string& key, const std::string& column) const {
  const Feature feature = FeatureOf(key);
  if (!b().ok()) return {};
  const DType dtype = TypeOf(feature.values);
  if (dtype != DType::kString && !IsWhole(dtype)) {
    Fail(column, absl::StrCat("feature '", key, "' is ", DTypeName(dtype),
                              ", expected strings or whole numbers"));
    return {};
  }
  if (feature.is_sparse()) return feature;
  const Endpoint x = feature.values;
  if (b().ShapeOf(x).rank() != 2) {
    Fail(column, absl::StrCat("feature '", key, "' has shape ", b().ShapeOf(x).ToString(),
                              ", expected [batch] or [batch, values]"));
    return {};
  }
  const Endpoint nothing =
      dtype == DType::kString ? b().Scalar<std::string>("") : NumberLike(b(), x, -1);
  const Endpoint places =
      b().Op("Where", {b().Op("NotEqual", {x, nothing})}, {{"T", DType::kBool}});
  return Feature(places, b().Op("GatherNd", {x, places}),
                 b().Op("Shape", {x}, {{"out_type", DType::kInt64}}));
}

Categories ColumnCall::CategoriesOf(const Feature& sparse, Endpoint ids) const {
  if (!b().ok()) return {};
  Categories categories;
  categories.examples = ColumnOf(b(), sparse.indices, 0);
  categories.places = ColumnOf(b(), sparse.indices, 1);
  categories.ids = ids;
  categories.batch =
      b().Op("GatherV2", {sparse.dense_shape, b().Scalar<int32_t>(0), b().Scalar<int32_t>(0)});
  return categories;
}

std::vector<train::Variable> ColumnCall::AddRows(const std::string& name, int64_t rows,
                                                 int64_t width, const train::Initializer& initial,
                                                 bool trainable) const {
  if (num_parts_ > 1 && trainable) {
    const auto parts = train::MinMaxPartitioner(num_parts_, 0, kSmallestPartBytes);
    return program_.AddPartitionedVariable(name, DType::kFloat, Shape{rows, width}, initial, parts);
  }
  return {program_.AddVariable(name, DType::kFloat, Shape{rows, width}, initial,
                               {.trainable = trainable})};
}

Endpoint CombinedRows(ColumnCall& call, const std::vector<train::Variable>& rows,
                      const Categories& categories, const std::string& combiner, double max_norm) {
  GraphBuilder& b = call.b();
  if (!b.ok()) return {};
  // Without what is nobody's and, as in TensorFlow, what has a weight of 0 or less where weights
  // divide.
  Endpoint is_there = b.Op("GreaterEqual", {categories.ids, b.Scalar<int64_t>(0)});
  const bool weighted = static_cast<bool>(categories.weights);
  if (weighted && combiner != "sum") {
    const Endpoint zero = NumberLike(b, categories.weights, 0);
    is_there = b.Op("LogicalAnd", {is_there, b.Op("Greater", {categories.weights, zero})});
  }
  const Endpoint kept = ReshapeTo(b, b.Op("Where", {is_there}, {{"T", DType::kBool}}), {-1});
  const auto of_kept = [&](Endpoint x) {
    return b.Op("GatherV2", {x, kept, b.Scalar<int32_t>(0)});
  };
  // An example without categories looks up the first one, so that its row is among those that
  // optimizers update, and gets zeros.
  const Endpoint of_example = ExpandDim(b, of_kept(categories.examples), -1);
  const Endpoint places = Concat(b, {of_example, b.Op("ZerosLike", {of_example})}, 1);
  const Endpoint shape =
      Concat(b, {ReshapeTo(b, categories.batch, {1}), b.Constant(Tensor::Vector<int64_t>({1}))}, 0);
  Node* filled = b.AddNode("SparseFillEmptyRows",
                           {places, of_kept(categories.ids), shape, b.Scalar<int64_t>(0)});
  if (filled == nullptr) return {};
  const Endpoint examples = ColumnOf(b, {filled, 0}, 0), ids = {filled, 1}, is_empty = {filled, 2};
  Endpoint weights = b.Op("OnesLike", {CastTo(b, ids, DType::kFloat)});
  if (weighted) {
    weights = b.Op("SparseFillEmptyRows",
                   {places, of_kept(categories.weights), shape, b.Scalar<float>(1)});
    weights = {weights.node, 1};
  }
  Endpoint values = train::EmbeddingLookup(b, rows, ids);
  if (max_norm > 0) values = Shortened(b, values, max_norm);
  values = b.Op("Mul", {values, ExpandDim(b, weights, -1)});
  const auto sum_up = [&](Endpoint x) {
    return b.Op("UnsortedSegmentSum", {x, examples, categories.batch});
  };
  const Endpoint sums = sum_up(values);
  Endpoint factor = CastTo(b, b.Op("LogicalNot", {is_empty}), DType::kFloat);
  if (combiner != "sum") {
    const Endpoint by = combiner == "mean"
                            ? sum_up(weights)
                            : b.Op("Sqrt", {sum_up(b.Op("Mul", {weights, weights}))});
    factor = b.Op("DivNoNan", {factor, by});
  }
  return b.Op("Mul", {sums, ExpandDim(b, factor, -1)});
}

}  // namespace weft::estimator
