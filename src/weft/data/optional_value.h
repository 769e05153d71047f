// SPDX-License-Identifier: Apache-2.0
// What an optional holds: a value of several tensors, or nothing.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "weft/tensor/tensor.h"
#include "weft/tensor/variant.h"

namespace weft::data {

class OptionalValue final : public VariantValue {
 public:
  OptionalValue(bool has_value, std::vector<Tensor> components)
      : has_value_(has_value), components_(std::move(components)) {}
  static constexpr char kTypeName[] = "tensorflow::data::Optional";
  absl::string_view type_name() const override { return kTypeName; }
  // In TensorFlow's form: a byte that says whether there is a value, and its components.
  StatusOr<std::string> Encode() const override { return std::string(1, has_value_ ? '\1' : '\0'); }
  std::vector<Tensor> EncodeTensors() const override { return components_; }
  bool has_value() const { return has_value_; }
  const std::vector<Tensor>& components() const { return components_; }

 private:
  const bool has_value_;
  const std::vector<Tensor> components_;
};

}  // namespace weft::data
