// SPDX-License-Identifier: Apache-2.0
// Keras's activations by name, and the layers that apply one.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// The activation `name` of x: linear (or ""), relu, relu6, elu, selu, gelu (the exact one),
// sigmoid, hard_sigmoid (Keras 3's, x/6 + 1/2 cut at 0 and 1), tanh, softmax, log_softmax,
// softplus, softsign, swish (silu), exponential, leaky_relu, mish, and those of
// keras3_activations.h. InvalidArgument in the builder's
// status for another one.
Endpoint Activate(GraphBuilder& b, const ActivationName& name, Endpoint x);

LayerRef Activation(const ActivationName& activation, const std::string& name = "");

struct ReluOptions {
  double max_value = -1;  // below 0: none
  double negative_slope = 0;
  double threshold = 0;
  std::string name = {};
};
LayerRef ReLU(const ReluOptions& options = {});
LayerRef LeakyReLU(double negative_slope = 0.3, const std::string& name = "");
LayerRef ELU(double alpha = 1, const std::string& name = "");
LayerRef Softmax(int64_t axis = -1, const std::string& name = "");
// A slope below 0 for each element, learned; one along each of `shared_axes` (1 is the first after
// the batch).
struct PReluOptions {
  Initializer alpha_initializer = "zeros";
  Regularizer alpha_regularizer = {};
  Constraint alpha_constraint = {};
  Axes shared_axes = {};
  std::string name = {};
};
LayerRef PReLU(const PReluOptions& options = {});
// x where it is above theta, else 0 (Keras 2 alone has it).
LayerRef ThresholdedReLU(double theta = 1, const std::string& name = "");
// What it gets; the second adds l1 * sum(|x|) + l2 * sum(x^2) of an example to the loss.
LayerRef Identity(const std::string& name = "");
LayerRef ActivityRegularization(double l1 = 0, double l2 = 0, const std::string& name = "");

}  // namespace weft::estimator
