// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/model_fn/eval_metric.h"

#include <utility>

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {
namespace {

Endpoint SumOfAll(GraphBuilder& b, Endpoint x) {
  return Reduce(b, "Sum", ReshapeTo(b, x, {-1}), {0});
}

}  // namespace

EvalMetric MeanOfValues(GraphBuilder& b, Endpoint values, Endpoint weights) {
  values = CastTo(b, values, DType::kFloat);
  const Endpoint ones = b.Op("OnesLike", {values});
  if (!b.ok()) return {};
  Endpoint each = ones;
  if (weights) {
    weights = CastTo(b, weights, DType::kFloat);
    while (b.ok() && b.ShapeOf(weights).rank() < b.ShapeOf(values).rank()) {
      weights = ExpandDim(b, weights, -1);
    }
    each = b.Op("Mul", {ones, weights});
  }
  return {{SumOfAll(b, b.Op("Mul", {values, each})), SumOfAll(b, each)},
          [](const std::vector<std::vector<double>>& sums) {
            return sums[1][0] == 0 ? 0 : sums[0][0] / sums[1][0];
          }};
}

EvalMetric MetricOf(GraphBuilder& b, std::shared_ptr<Metric> metric, Endpoint labels,
                    Endpoint predictions, Endpoint weights) {
  if (!weights) {
    const Endpoint first = Reduce(b, "Sum", ReshapeTo(b, predictions, {-1, 1}), {1});
    weights = b.Op("OnesLike", {first});
  }
  std::vector<Endpoint> sums = metric->Sums(b, labels, predictions, weights);
  return {std::move(sums),
          [metric](const std::vector<std::vector<double>>& all) { return metric->Result(all); }};
}

}  // namespace weft::estimator
