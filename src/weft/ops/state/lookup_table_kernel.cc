// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/lookup_table_kernel.h"

#include <cstring>
#include <utility>

namespace weft::ops::state {
namespace {

std::string Element(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kString) return tensor.data<std::string>()[i];
  const size_t size = DTypeSize(tensor.dtype());
  return std::string(reinterpret_cast<const char*>(tensor.bytes()) + static_cast<size_t>(i) * size,
                     size);
}

void SetElement(Tensor* tensor, int64_t i, const std::string& bytes) {
  if (tensor->dtype() == DType::kString) {
    tensor->data<std::string>()[i] = bytes;
  } else {
    std::memcpy(tensor->bytes() + static_cast<size_t>(i) * bytes.size(), bytes.data(),
                bytes.size());
  }
}

// How an element is shown in an error.
std::string Shown(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kString) return tensor.data<std::string>()[i];
  StatusOr<Tensor> one = Tensor::Allocate(tensor.dtype(), Shape());
  if (!one.ok()) return absl::StrCat("number ", i);
  SetElement(&*one, 0, Element(tensor, i));
  return one->ToString();
}

}  // namespace

std::string LookupTable::DebugString() const {
  return absl::StrCat("A lookup table of ", size(), " entries, ", DTypeName(key_), " -> ",
                      DTypeName(value_));
}

int64_t LookupTable::size() const {
  absl::ReaderMutexLock lock(&mutex_);
  return static_cast<int64_t>(entries_.size());
}

Status LookupTable::CheckTypes(const Tensor& keys, const Tensor* values) const {
  if (keys.dtype() != key_ || (values != nullptr && values->dtype() != value_)) {
    return InvalidArgument("Table '", name_, "' maps ", DTypeName(key_), " to ", DTypeName(value_),
                           ", but was given ", DTypeName(keys.dtype()), " and ",
                           DTypeName(values == nullptr ? value_ : values->dtype()));
  }
  if (values == nullptr || values->shape() == keys.shape()) return absl::OkStatus();
  return InvalidArgument("Expected shape ", keys.shape().ToString(), " for value, got ",
                         values->shape().ToString());
}

Status LookupTable::Find(const Tensor& keys, const Tensor& fallback, Tensor* values) const {
  WEFT_RETURN_IF_ERROR(CheckTypes(keys, nullptr));
  if (fallback.dtype() != value_ || (fallback.rank() != 0 && fallback.shape() != keys.shape())) {
    return InvalidArgument("Expected shape [] or ", keys.shape().ToString(), " and type ",
                           DTypeName(value_), " for default value, got ",
                           fallback.shape().ToString(), " and ", DTypeName(fallback.dtype()));
  }
  absl::ReaderMutexLock lock(&mutex_);
  if (is_fixed_ && !is_filled_) {
    return FailedPrecondition("Table not initialized. ('", name_,
                              "': run its initializer, tf.tables_initializer() in Python)");
  }
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    const auto found = entries_.find(Element(keys, i));
    SetElement(
        values, i,
        found != entries_.end() ? found->second : Element(fallback, fallback.rank() == 0 ? 0 : i));
  }
  return absl::OkStatus();
}

Status LookupTable::Initialize(const Tensor& keys, const Tensor& values) {
  if (!is_fixed_) return InvalidArgument("Table '", name_, "' needs no initializer: insert");
  WEFT_RETURN_IF_ERROR(CheckTypes(keys, &values));
  absl::MutexLock lock(&mutex_);
  if (is_filled_) {
    if (keys.num_elements() == static_cast<int64_t>(entries_.size())) return absl::OkStatus();
    return FailedPrecondition("Table was already initialized with different data. ('", name_,
                              "' has ", entries_.size(), " entries, given were ",
                              keys.num_elements(), ")");
  }
  Entries entries;
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    std::string value = Element(values, i);
    const auto [entry, is_new] = entries.try_emplace(Element(keys, i), value);
    if (is_new || entry->second == value) continue;
    return FailedPrecondition("HashTable has different value for same key. Table '", name_,
                              "', key ", Shown(keys, i), ", second value ", Shown(values, i));
  }
  entries_ = std::move(entries);
  is_filled_ = true;
  return absl::OkStatus();
}

Status LookupTable::CheckMayChange() const {
  if (!is_fixed_) return absl::OkStatus();
  return Unimplemented("Insert not supported by a table whose entries are fixed: '", name_,
                       "'. A MutableHashTable takes more");
}

Status LookupTable::Insert(const Tensor& keys, const Tensor& values) {
  WEFT_RETURN_IF_ERROR(CheckMayChange());
  WEFT_RETURN_IF_ERROR(CheckTypes(keys, &values));
  absl::MutexLock lock(&mutex_);
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    entries_.insert_or_assign(Element(keys, i), Element(values, i));
  }
  return absl::OkStatus();
}

Status LookupTable::Remove(const Tensor& keys) {
  WEFT_RETURN_IF_ERROR(CheckMayChange());
  WEFT_RETURN_IF_ERROR(CheckTypes(keys, nullptr));
  absl::MutexLock lock(&mutex_);
  for (int64_t i = 0; i < keys.num_elements(); ++i) entries_.erase(Element(keys, i));
  return absl::OkStatus();
}

Status LookupTable::Import(const Tensor& keys, const Tensor& values) {
  if (is_fixed_) return Initialize(keys, values);
  WEFT_RETURN_IF_ERROR(CheckTypes(keys, &values));
  Entries entries;
  for (int64_t i = 0; i < keys.num_elements(); ++i) {
    entries.insert_or_assign(Element(keys, i), Element(values, i));
  }
  absl::MutexLock lock(&mutex_);
  entries_ = std::move(entries);
  return absl::OkStatus();
}

Status LookupTable::Export(Tensor* keys, Tensor* values) const {
  absl::ReaderMutexLock lock(&mutex_);
  const Shape shape{static_cast<int64_t>(entries_.size())};
  WEFT_ASSIGN_OR_RETURN(*keys, Tensor::Allocate(key_, shape));
  WEFT_ASSIGN_OR_RETURN(*values, Tensor::Allocate(value_, shape));
  int64_t i = 0;
  for (const auto& [key, value] : entries_) {
    SetElement(keys, i, key);
    SetElement(values, i++, value);
  }
  return absl::OkStatus();
}

}  // namespace weft::ops::state
