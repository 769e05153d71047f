// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/variable.h"

#include <utility>

namespace weft {

Status Variable::Uninitialized() const {
  return FailedPrecondition("Attempting to use uninitialized value ", name_);
}

bool Variable::IsInitialized() const {
  absl::MutexLock lock(&mutex_);
  return value_.IsInitialized();
}

StatusOr<Tensor> Variable::Read() const {
  absl::MutexLock lock(&mutex_);
  if (!value_.IsInitialized()) return Uninitialized();
  return value_;
}

void Variable::Assign(Tensor value) {
  absl::MutexLock lock(&mutex_);
  AssignLocked(std::move(value));
}

void Variable::AssignLocked(Tensor value) {
  if (value.buffer() && value.buffer()->read_only()) {
    // Another process's memory, which a value that stays would keep from it.
    if (StatusOr<Tensor> own = value.Clone(); own.ok()) value = *std::move(own);
  }
  std::swap(value_, value);
}

StatusOr<Tensor*> Variable::MutableLocked() {
  if (!value_.IsInitialized()) return Uninitialized();
  if (!value_.HasOneRef()) {
    WEFT_ASSIGN_OR_RETURN(value_, value_.Clone());
  }
  return &value_;
}

Status Variable::Update(absl::FunctionRef<Status(Tensor&)> update) {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(Tensor * value, MutableLocked());
  return update(*value);
}

void Variable::Clear() { Assign(Tensor()); }

std::string Variable::DebugString() const {
  absl::MutexLock lock(&mutex_);
  return absl::StrCat(DTypeName(dtype_), "/",
                      value_.IsInitialized() ? value_.shape().ToString() : "?");
}

}  // namespace weft
