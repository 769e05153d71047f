// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/gradients.h"

namespace weft::ops {

Status PassGradientOn(GradientContext& c) {
  c.set_input(0, c.gradient());
  return absl::OkStatus();
}

Endpoint ScalarOf(GradientContext& c, DType dtype, double value) {
  StatusOr<Tensor> scalar = Tensor::Allocate(dtype, Shape());
  if (!scalar.ok()) {
    c.builder().Fail(scalar.status());
    return {};
  }
  const bool known = VisitDType(dtype, Numbers(), [&]<typename T>() {
    if constexpr (std::is_constructible_v<T, double>) *scalar->data<T>() = static_cast<T>(value);
  });
  if (!known) {
    c.builder().Fail(Unimplemented("No gradient of ", c.node().op(), " for ", DTypeName(dtype)));
    return {};
  }
  return c.builder().Constant(*scalar);
}

Endpoint Conjugate(GradientContext& c, Endpoint x) {
  return IsComplex(TypeOf(x)) ? c.Op("Conj", {x}) : x;
}

void SetBroadcastGradients(GradientContext& c, Endpoint x, Endpoint y) {
  const Endpoint x_shape = c.Op("Shape", {c.input(0)});
  const Endpoint y_shape = c.Op("Shape", {c.input(1)});
  const Endpoint x_axes = c.Op("BroadcastGradientArgs", {x_shape, y_shape});
  const Endpoint y_axes{x_axes.node, 1};
  if (x) c.set_input(0, c.Op("Reshape", {c.Op("Sum", {x, x_axes}), x_shape}));
  if (y) c.set_input(1, c.Op("Reshape", {c.Op("Sum", {y, y_axes}), y_shape}));
}

}  // namespace weft::ops
