// SPDX-License-Identifier: Apache-2.0
// Numbers of an evaluation, over all batches.
#pragma once

#include <functional>
#include <vector>

#include "weft/estimator/metric.h"
#include "weft/graph/builder.h"

namespace weft::estimator {

// The graph gives sums of each batch; they are added up and make one number.
struct EvalMetric {
  std::vector<Endpoint> sums;  // float
  std::function<double(const std::vector<std::vector<double>>& sums)> result;
};

// The mean of all `values`; `weights` are of their shape, or one a row. Empty: all 1.
EvalMetric MeanOfValues(GraphBuilder& b, Endpoint values, Endpoint weights = {});
// One of Keras's metrics (metric.h), of `weights` [batch]; empty: all 1.
EvalMetric MetricOf(GraphBuilder& b, std::shared_ptr<Metric> metric, Endpoint labels,
                    Endpoint predictions, Endpoint weights = {});

}  // namespace weft::estimator
