// SPDX-License-Identifier: Apache-2.0
// What models make of columns: a matrix of dense ones, a weighted sum of all.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

#include "weft/estimator/columns/feature_column.h"
#include "weft/estimator/graph_writing.h"

namespace weft::estimator {
namespace {

// In the order of their names; fails for two of one name.
std::vector<Column> Sorted(ColumnCall& call, std::vector<Column> columns, const char* model) {
  if (columns.empty()) {
    call.b().Fail(InvalidArgument(model, " has no feature columns, expected one or more"));
  }
  std::set<std::string> names;
  for (const Column& column : columns) {
    if (column == nullptr) {
      call.b().Fail(InvalidArgument(model, " has an empty feature column"));
      return {};
    }
    if (!names.insert(column->name()).second) {
      call.b().Fail(InvalidArgument(model, " has two feature columns '", column->name(), "'"));
    }
  }
  std::sort(columns.begin(), columns.end(),
            [](const Column& a, const Column& b) { return a->name() < b->name(); });
  return columns;
}

}  // namespace

Categories FeatureColumn::CategoriesOf(ColumnCall& call) const {
  call.Fail(name(), "expected a categorical column");
  return {};
}

Endpoint FeatureColumn::DenseOf(ColumnCall& call) const {
  call.Fail(name(),
            "expected a dense column; an embedding or an indicator makes one of a categorical one");
  return {};
}

ExampleSpec MakeExampleSpec(const std::vector<Column>& columns) {
  ExampleSpec spec;
  for (const Column& column : columns) column->AddTo(&spec);
  return spec;
}

Endpoint DenseFeatures(ColumnCall& call, const std::vector<Column>& columns) {
  std::vector<Endpoint> parts;
  for (const Column& column : Sorted(call, columns, "The input layer")) {
    if (!call.b().ok()) return {};
    parts.push_back(column->DenseOf(call));
  }
  if (!call.b().ok()) return {};
  return parts.size() == 1 ? parts[0] : Concat(call.b(), parts, 1);
}

Endpoint LinearModel(ColumnCall& call, const std::vector<Column>& columns,
                     const LinearModelOptions& options) {
  GraphBuilder& b = call.b();
  const std::string& combiner = options.sparse_combiner;
  if (combiner != "mean" && combiner != "sqrtn" && combiner != "sum") {
    b.Fail(InvalidArgument("There is no sparse_combiner '", combiner,
                           "', expected \"mean\", \"sqrtn\" or \"sum\""));
  }
  std::vector<Endpoint> sums;
  for (const Column& column : Sorted(call, columns, "The linear model")) {
    if (!b.ok()) return {};
    if (column->num_buckets() > 0) {
      const Categories categories = column->CategoriesOf(call);
      if (!b.ok()) return {};
      b.PushName(column->name());
      const auto rows =
          call.AddRows("weights", column->num_buckets(), options.units, train::Zeros(), true);
      sums.push_back(CombinedRows(call, rows, categories, combiner, 0));
      b.PopName();
      continue;
    }
    const Endpoint dense = column->DenseOf(call);
    if (!b.ok()) return {};
    b.PushName(column->name());
    const train::Variable weights = call.program().AddVariable(
        "weights", DType::kFloat, Shape{column->width(), options.units}, train::Zeros());
    sums.push_back(b.Op("MatMul", {dense, weights.value}));
    b.PopName();
  }
  if (!b.ok()) return {};
  Endpoint sum = sums.size() == 1 ? sums[0] : b.Op("AddN", {sums});
  if (!options.use_bias) return sum;
  const train::Variable bias = call.program().AddVariable("bias_weights", DType::kFloat,
                                                          Shape{options.units}, train::Zeros());
  return b.Op("BiasAdd", {sum, bias.value});
}

}  // namespace weft::estimator
