// SPDX-License-Identifier: Apache-2.0
// Working memory of kernels whose size comes from their inputs: counted and limited as tensors are,
// so that a size that makes no sense is an error and not the end of the process.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/status.h"
#include "weft/tensor/buffer.h"

namespace weft {

// ResourceExhausted, naming `what`, if `count` things of `bytes_each` would not fit into the host's
// memory: before a container is grown one by one to a number that an input says.
Status CheckRoomFor(int64_t count, size_t bytes_each, absl::string_view what);

// As many elements as an input says, aligned to 64 bytes.
template <typename T>
class Scratch {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  // Elements all `value`. ResourceExhausted when memory is short.
  static StatusOr<Scratch> Make(int64_t count, T value = T()) {
    WEFT_RETURN_IF_ERROR(CheckRoomFor(count, sizeof(T), "elements to work with"));
    Ref<Buffer> buffer = HostAllocator().Allocate(static_cast<size_t>(count) * sizeof(T));
    if (!buffer) return ResourceExhausted("Out of memory for ", count, " elements to work with");
    Scratch scratch(std::move(buffer), count);
    std::fill(scratch.begin(), scratch.end(), value);
    return scratch;
  }

  T* data() { return reinterpret_cast<T*>(buffer_->data()); }
  const T* data() const { return reinterpret_cast<const T*>(buffer_->data()); }
  int64_t size() const { return size_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  T& operator[](int64_t i) { return data()[i]; }
  const T& operator[](int64_t i) const { return data()[i]; }
  const T& back() const { return data()[size_ - 1]; }

 private:
  Scratch(Ref<Buffer> buffer, int64_t size) : buffer_(std::move(buffer)), size_(size) {}

  Ref<Buffer> buffer_;
  int64_t size_;
};

}  // namespace weft
