// SPDX-License-Identifier: Apache-2.0
// The dense layer.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// activation(x . kernel + bias) along the last axis, which must be known: [..., inputs] becomes
// [..., units].
struct DenseOptions {
  ActivationName activation = {};
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};
LayerRef Dense(int64_t units, const DenseOptions& options = {});

}  // namespace weft::estimator
