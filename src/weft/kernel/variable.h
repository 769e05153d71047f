// SPDX-License-Identifier: Apache-2.0
// The storage behind reference and resource variables.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "weft/kernel/resource.h"
#include "weft/tensor/tensor.h"

namespace weft {

// A tensor that steps read and update. Thread-safe. Reads are snapshots that share the bytes; an
// update writes in place when no snapshot is alive and copies first otherwise.
class Variable final : public Resource {
 public:
  // `shape` is what was declared: unknown where the first Assign decides.
  Variable(std::string name, DType dtype, PartialShape shape = {})
      : name_(std::move(name)), dtype_(dtype), declared_shape_(std::move(shape)) {}

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  const PartialShape& declared_shape() const { return declared_shape_; }
  bool IsInitialized() const;
  // FailedPrecondition "Attempting to use uninitialized value NAME" before the first Assign.
  StatusOr<Tensor> Read() const;
  void Assign(Tensor value);
  // Runs `update` on the value, alone and in place. Same error as Read before the first Assign.
  Status Update(absl::FunctionRef<Status(Tensor& value)> update);
  // Forgets the value.
  void Clear();
  // Removed from its device: forgets the value, whoever still holds the variable.
  void Close() override { Clear(); }
  std::string DebugString() const override;

  // For updates of several variables at once: hold all mutexes, taken in order of address.
  absl::Mutex& mutex() const ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
  // The value with bytes of its own, for writing. The mutex must be held.
  StatusOr<Tensor*> MutableLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  const Tensor& ValueLocked() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return value_; }
  void AssignLocked(Tensor value) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

 private:
  Status Uninitialized() const;
  const std::string name_;
  const DType dtype_;
  const PartialShape declared_shape_;
  mutable absl::Mutex mutex_;
  Tensor value_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
