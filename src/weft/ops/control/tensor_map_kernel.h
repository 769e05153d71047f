// SPDX-License-Identifier: Apache-2.0
// Maps from tensors to tensors.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"

#include "base/ref.h"
#include "base/status.h"
#include "weft/tensor/tensor.h"
#include "weft/tensor/variant.h"

namespace weft::ops {

// Immutable. Keys and values are of plain types or strings.
class TensorMap final : public VariantValue {
 public:
  struct Entry {
    Tensor key;
    Tensor value;
  };
  using Entries = std::map<std::string, Entry>;  // by type, shape and bytes of the key

  explicit TensorMap(Entries entries) : entries_(std::move(entries)) {}
  absl::string_view type_name() const override { return "tensorflow::TensorMap"; }
  const Entries& entries() const { return entries_; }

  // Under which name a key stands. InvalidArgument for resources and variants.
  static StatusOr<std::string> NameOf(const Tensor& key);

 private:
  const Entries entries_;
};

// The map in a scalar variant, or null.
const TensorMap* FindTensorMap(const Tensor& tensor);
Tensor TensorOf(Ref<TensorMap> map);

// Zeros in the place of each value.
StatusOr<Ref<TensorMap>> ZerosLike(const TensorMap& map);
// The keys of both; values of a key that both have are added.
StatusOr<Ref<TensorMap>> AddMaps(
    const TensorMap& a, const TensorMap& b,
    absl::FunctionRef<StatusOr<Tensor>(const Tensor& a, const Tensor& b)> add);

}  // namespace weft::ops
