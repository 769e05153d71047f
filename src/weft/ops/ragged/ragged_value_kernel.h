// SPDX-License-Identifier: Apache-2.0
// A ragged tensor as the element of a variant tensor.
#pragma once

#include <utility>
#include <vector>

#include "weft/ops/ragged/splits_kernel.h"
#include "weft/tensor/variant.h"

namespace weft::ops::ragged {

// A ragged tensor; without splits a dense one.
class RaggedValue final : public VariantValue {
 public:
  RaggedValue(std::vector<Splits> splits, Tensor values)
      : splits_(std::move(splits)), values_(std::move(values)) {}
  absl::string_view type_name() const override { return "RaggedTensorVariant"; }
  const std::vector<Splits>& splits() const { return splits_; }
  const Tensor& values() const { return values_; }
  int64_t rows() const {
    return splits_.empty() ? values_.dim(0) : static_cast<int64_t>(splits_[0].size()) - 1;
  }

 private:
  const std::vector<Splits> splits_;
  const Tensor values_;
};

}  // namespace weft::ops::ragged
