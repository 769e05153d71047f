// SPDX-License-Identifier: Apache-2.0
// What an optional holds: a value of several tensors, or nothing.
#pragma once

#include <utility>
#include <vector>

#include "weft/tensor/tensor.h"
#include "weft/tensor/variant.h"

namespace weft::data {

class OptionalValue final : public VariantValue {
 public:
  OptionalValue(bool has_value, std::vector<Tensor> components)
      : has_value_(has_value), components_(std::move(components)) {}
  absl::string_view type_name() const override { return "tensorflow::data::Optional"; }
  bool has_value() const { return has_value_; }
  const std::vector<Tensor>& components() const { return components_; }

 private:
  const bool has_value_;
  const std::vector<Tensor> components_;
};

}  // namespace weft::data
