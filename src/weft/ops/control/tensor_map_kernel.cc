// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/control/tensor_map_kernel.h"

namespace weft::ops {

StatusOr<std::string> TensorMap::NameOf(const Tensor& key) {
  std::string name = absl::StrCat(DTypeName(key.dtype()), key.shape().ToString());
  if (key.dtype() == DType::kString) {
    for (const std::string& text : key.span<std::string>()) {
      absl::StrAppend(&name, text.size(), ":", text);
    }
    return name;
  }
  if (!IsPlain(key.dtype())) {
    return InvalidArgument("A key of a map cannot be a ", DTypeName(key.dtype()));
  }
  name.append(reinterpret_cast<const char*>(key.bytes()), key.size_bytes());
  return name;
}

const TensorMap* FindTensorMap(const Tensor& tensor) {
  if (tensor.dtype() != DType::kVariant || !tensor.shape().IsScalar()) return nullptr;
  return dynamic_cast<const TensorMap*>(tensor.scalar<Variant>().value.get());
}

Tensor TensorOf(Ref<TensorMap> map) { return Tensor::Scalar(Variant{std::move(map)}); }

StatusOr<Ref<TensorMap>> ZerosLike(const TensorMap& map) {
  TensorMap::Entries zeros = map.entries();
  for (auto& [name, entry] : zeros) {
    WEFT_ASSIGN_OR_RETURN(entry.value, Tensor::Zeros(entry.value.dtype(), entry.value.shape()));
  }
  return MakeRef<TensorMap>(std::move(zeros));
}

StatusOr<Ref<TensorMap>> AddMaps(
    const TensorMap& a, const TensorMap& b,
    absl::FunctionRef<StatusOr<Tensor>(const Tensor& a, const Tensor& b)> add) {
  TensorMap::Entries sum = a.entries();
  for (const auto& [name, entry] : b.entries()) {
    const auto [mine, is_new] = sum.try_emplace(name, entry);
    if (is_new) continue;
    if (mine->second.value.dtype() != entry.value.dtype()) {
      return InvalidArgument(
          "Values of one key differ in type: ", DTypeName(mine->second.value.dtype()), " and ",
          DTypeName(entry.value.dtype()));
    }
    WEFT_ASSIGN_OR_RETURN(mine->second.value, add(mine->second.value, entry.value));
  }
  return MakeRef<TensorMap>(std::move(sum));
}

}  // namespace weft::ops
