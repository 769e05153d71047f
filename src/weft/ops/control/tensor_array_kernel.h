// SPDX-License-Identifier: Apache-2.0
// The array behind the TensorArray ops: elements that a loop writes and reads one by one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "weft/kernel/resource.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::control {

// Each element is written once and, unless `clear_after_read` is off, read once. Thread-safe.
class TensorArray : public Resource {
 public:
  struct Options {
    DType dtype = DType::kInvalid;
    PartialShape element_shape;
    bool dynamic_size = false;
    bool clear_after_read = true;
    bool identical_element_shapes = false;
    // Of gradients: elements that come twice add up, those that never came are zeros.
    bool is_gradient = false;
  };
  TensorArray(std::string name, Options options, int64_t size)
      : name_(std::move(name)), dtype_(options.dtype), options_(std::move(options)), size_(size) {}

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }

  // InvalidArgument for an index that is not there (unless the array grows), another type or
  // shape, and an element that was written or read before.
  Status Write(int64_t index, const Tensor& value);
  // InvalidArgument for an index that is not there, an element that was never written (unless its
  // shape is known: zeros), and one that was read before.
  StatusOr<Tensor> Read(int64_t index);
  StatusOr<int64_t> size() const;
  // Elements with `index` < the result can be written.
  StatusOr<int64_t> SizeToWrite(int64_t wanted) const;
  // ResourceExhausted if memory is too short for `count` elements, whatever they hold.
  Status CheckRoom(int64_t count) const;
  // The shape that all elements are known to have, together with `more`.
  StatusOr<PartialShape> MergeElementShape(const PartialShape& more);
  // An array for the gradients of this one's elements, each of shape `prefix` + the element's. This
  // array does not grow any more.
  StatusOr<Ref<TensorArray>> MakeGradient(std::string name, const Shape& prefix);
  // Drops the elements; other calls fail from then on.
  void CloseForGood();

  std::string DebugString() const override { return "TensorArray " + name_; }

 private:
  struct Element {
    Tensor value;
    PartialShape shape;  // of the zeros that stand for an unwritten gradient
    bool is_written = false;
    bool is_read = false;
    bool is_cleared = false;
  };
  Status CheckOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Fits(int64_t index, const Element& element, const Tensor& value) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<Tensor> ReadMissing(int64_t index) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  const DType dtype_;
  mutable absl::Mutex mutex_;
  Options options_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t size_ ABSL_GUARDED_BY(mutex_);
  // Those that were written, and gradients whose shape is known: a program may name any size.
  absl::flat_hash_map<int64_t, Element> elements_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::ops::control
