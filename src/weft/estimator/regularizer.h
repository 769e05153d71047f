// SPDX-License-Identifier: Apache-2.0
// Keras's regularizers: what weights or outputs add to the loss.
#pragma once

#include <string>

#include "base/status.h"
#include "net/json.h"
#include "weft/graph/builder.h"

namespace weft::estimator {

// None by default; "l1", "l2" and "l1_l2" give Keras's defaults of 0.01.
class Regularizer {
 public:
  Regularizer() = default;
  Regularizer(const char* name);  // NOLINT: a name is one
  static Regularizer L1(double factor = 0.01) { return Regularizer("L1", factor, 0); }
  static Regularizer L2(double factor = 0.01) { return Regularizer("L2", 0, factor); }
  static Regularizer L1L2(double l1 = 0, double l2 = 0) { return Regularizer("L1L2", l1, l2); }
  // How far the rows of a matrix are from being orthogonal.
  static Regularizer OrthogonalRows(double factor = 0.01) {
    return Regularizer("OrthogonalRegularizer", factor, 0);
  }

  bool empty() const { return class_name_.empty(); }
  // A scalar: what `x` costs.
  Endpoint Loss(GraphBuilder& b, Endpoint x) const;

  Json ToJson() const;  // null for none
  static StatusOr<Regularizer> FromJson(const Json& json);

 private:
  Regularizer(std::string class_name, double first, double second)
      : class_name_(std::move(class_name)), first_(first), second_(second) {}
  Endpoint RowProducts(GraphBuilder& b, Endpoint x) const;

  std::string class_name_;
  double first_ = 0, second_ = 0;  // of absolute values, of squares
};

}  // namespace weft::estimator
