// SPDX-License-Identifier: Apache-2.0
// Keras's constraints: what weights are brought back to after each update.
#pragma once

#include <string>

#include "base/status.h"
#include "net/json.h"
#include "weft/estimator/axes.h"
#include "weft/graph/builder.h"

namespace weft::estimator {

// None by default. `axes` are those along which a length is taken: 0 for a dense kernel, so that
// each unit's weights have a length; {0, 1, 2} for that of a 2-D convolution.
class Constraint {
 public:
  Constraint() = default;
  Constraint(const char* name);  // NOLINT: "non_neg", "max_norm", "unit_norm", "min_max_norm"
  static Constraint NonNeg() { return Constraint("NonNeg", 0, 0, 0, {}); }
  static Constraint MaxNorm(double max_value = 2, Axes axes = {0}) {
    return Constraint("MaxNorm", 0, max_value, 1, std::move(axes));
  }
  static Constraint UnitNorm(Axes axes = {0}) {
    return Constraint("UnitNorm", 0, 0, 0, std::move(axes));
  }
  static Constraint MinMaxNorm(double min_value = 0, double max_value = 1, double rate = 1,
                               Axes axes = {0}) {
    return Constraint("MinMaxNorm", min_value, max_value, rate, std::move(axes));
  }

  bool empty() const { return class_name_.empty(); }
  // `weight` as it may be.
  Endpoint Apply(GraphBuilder& b, Endpoint weight) const;

  Json ToJson() const;  // null for none
  static StatusOr<Constraint> FromJson(const Json& json);

 private:
  Constraint(std::string class_name, double least, double most, double rate, Axes axes)
      : class_name_(std::move(class_name)),
        min_(least),
        max_(most),
        rate_(rate),
        axes_(std::move(axes)) {}

  std::string class_name_;
  double min_ = 0, max_ = 0, rate_ = 1;
  Axes axes_;
};

}  // namespace weft::estimator
