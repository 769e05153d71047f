// SPDX-License-Identifier: Apache-2.0
// What an optional holds, under the name by which ops know it.
#pragma once

#include "weft/data/optional_value.h"
#include "weft/kernel/op_spec.h"
#include "weft/tensor/tensor_proto.h"

namespace weft::ops {

using data::OptionalValue;

// What the optional in `variant` holds, also as it came from another task; none for other variants.
inline Ref<OptionalValue> OptionalOf(const Tensor& variant) {
  if (!variant.shape().IsScalar()) return {};
  VariantValue* const value = variant.data<Variant>()->value.get();
  if (auto* optional = dynamic_cast<OptionalValue*>(value)) return Ref<OptionalValue>(optional);
  const auto* encoded = dynamic_cast<const EncodedVariant*>(value);
  const bool is_one = encoded != nullptr && encoded->type_name() == OptionalValue::kTypeName &&
                      encoded->metadata().size() == 1;
  if (!is_one) return {};
  return MakeRef<OptionalValue>(encoded->metadata()[0] != '\0', encoded->tensors());
}

}  // namespace weft::ops
