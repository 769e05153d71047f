// SPDX-License-Identifier: Apache-2.0
// What an optional holds, under the name by which ops know it.
#pragma once

#include "weft/data/optional_value.h"
#include "weft/kernel/op_spec.h"

namespace weft::ops {

using data::OptionalValue;

// What the optional in `variant` holds; null for other variants.
inline const OptionalValue* OptionalOf(const Tensor& variant) {
  if (!variant.shape().IsScalar()) return nullptr;
  return dynamic_cast<const OptionalValue*>(variant.data<Variant>()->value.get());
}

}  // namespace weft::ops
