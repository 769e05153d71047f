// SPDX-License-Identifier: Apache-2.0
// Tables from keys to values that outlive a step.
#pragma once

#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "weft/kernel/resource.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::state {

// What a table is created with; nodes that share one must agree on its types and shapes.
struct TableOptions {
  std::string name;
  DType key = DType::kInvalid;    // strings or whole numbers
  DType value = DType::kInvalid;  // any plain type or strings
  Shape key_shape;                // of one key, and of one value
  Shape value_shape;
  bool is_fixed = false;
  // Keys that the program may not use: those of a dense table. Not initialized elsewhere.
  Tensor empty_key;
  Tensor deleted_key;
  // How many entries a dense table has room for, a power of 2, and what part of that may be taken
  // before it doubles. It is exported with its room.
  int64_t buckets = 0;
  float max_load = 0.8f;

  // InvalidArgument for types that no table holds.
  Status Check() const;
};

// A fixed table gets its entries once, before it is first used. Thread-safe.
class LookupTable final : public Resource {
 public:
  explicit LookupTable(TableOptions options);
  std::string DebugString() const override;

  const TableOptions& options() const { return options_; }

  // The shape of the values of these keys; InvalidArgument if they do not end in the keys' shape.
  StatusOr<Shape> ShapeOfValues(const Tensor& keys) const;
  // The value of each key; `fallback`, one for all or one for each key, where there is none.
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
  // Types, shapes, and that no key is one that the program may not use.
  Status CheckKeys(const Tensor& keys) const;
  Status CheckEntries(const Tensor& keys, const Tensor& values) const;
  // For a dense table all entries are rows of matrices, some of keys that mean there is none.
  Status CheckRows(const Tensor& keys, const Tensor& values) const;
  bool is_dense() const { return options_.empty_key.IsInitialized(); }
  bool IsReserved(const std::string& key) const;
  // Room for `more` entries of a dense table.
  Status MakeRoom(int64_t more) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t CountOf(const Tensor& keys) const { return keys.num_elements() / key_width_; }

  const TableOptions options_;
  const int64_t key_width_;  // elements of one key, and of one value
  const int64_t value_width_;
  std::string empty_key_;
  std::string deleted_key_;
  mutable absl::Mutex mutex_;
  bool is_filled_ ABSL_GUARDED_BY(mutex_) = false;
  Entries entries_ ABSL_GUARDED_BY(mutex_);
  int64_t buckets_ ABSL_GUARDED_BY(mutex_);
  // The values of keys that were removed from a dense table and still take room in it.
  std::vector<std::string> removed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::ops::state
