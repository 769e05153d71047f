// SPDX-License-Identifier: Apache-2.0
// Tables from keys to values that outlive a step.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "weft/kernel/resource.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::state {

// Keys are strings or whole numbers, values scalars of any plain type or strings. A fixed table
// gets its entries once, before it is first used. Thread-safe.
class LookupTable final : public Resource {
 public:
  LookupTable(std::string name, DType key, DType value, bool is_fixed)
      : name_(std::move(name)), key_(key), value_(value), is_fixed_(is_fixed) {}
  std::string DebugString() const override;

  DType key_dtype() const { return key_; }
  DType value_dtype() const { return value_; }
  bool is_fixed() const { return is_fixed_; }

  // values[i] of keys[i]; `fallback`, one for all or one for each key, where there is none.
  // FailedPrecondition before a fixed table has its entries.
  Status Find(const Tensor& keys, const Tensor& fallback, Tensor* values) const;
  // Gives a fixed table its entries. A second time they must be as many: who initializes it first
  // has done so for all. FailedPrecondition for a key with two values.
  Status Initialize(const Tensor& keys, const Tensor& values);
  // Unimplemented for fixed tables.
  Status Insert(const Tensor& keys, const Tensor& values);
  Status Remove(const Tensor& keys);
  // Drops all entries first; initializes a fixed table.
  Status Import(const Tensor& keys, const Tensor& values);
  Status Export(Tensor* keys, Tensor* values) const;
  int64_t size() const;

 private:
  using Entries = absl::flat_hash_map<std::string, std::string>;  // the elements' bytes
  Status CheckMayChange() const;
  Status CheckTypes(const Tensor& keys, const Tensor* values) const;

  const std::string name_;
  const DType key_;
  const DType value_;
  const bool is_fixed_;
  mutable absl::Mutex mutex_;
  bool is_filled_ ABSL_GUARDED_BY(mutex_) = false;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::ops::state
