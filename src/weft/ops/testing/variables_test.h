// SPDX-License-Identifier: Apache-2.0
// Variables for tests of the ops that change them.
#pragma once

#include "weft/kernel/variable.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::testing {

// Named "w", with a copy of the value.
inline Ref<Variable> MakeVariable(const Tensor& value) {
  auto variable = MakeRef<Variable>("w", value.dtype(), value.shape());
  StatusOr<Tensor> own = value.Clone();
  if (own.ok()) variable->Assign(*own);
  return variable;
}

inline Tensor HandleOf(const Ref<Variable>& variable) {
  return Tensor::Scalar(ResourceHandle{.container = "localhost", .name = "w", .object = variable});
}

}  // namespace weft::ops::testing
