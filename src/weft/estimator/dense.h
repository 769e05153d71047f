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

// activation(einsum(equation, x, kernel) + bias): "abc,cd->abd", "...x,xy->...y". `output_shape` is
// an example's, of the axes that the equation names, -1 where the input says it; the bias has the
// axes `bias_axes`, none if that is empty.
struct EinsumDenseOptions {
  std::string bias_axes = {};
  ActivationName activation = {};
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
};
LayerRef EinsumDense(const std::string& equation, const Sizes& output_shape,
                     const EinsumDenseOptions& options = {});

}  // namespace weft::estimator
