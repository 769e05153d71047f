// SPDX-License-Identifier: Apache-2.0
// Scratch memory of one kernel's call.
#pragma once

#include <algorithm>
#include <cstdint>

#include "weft/tensor/buffer.h"

namespace weft {

// `count` elements from the pool: fresh pages would cost more than the work on them. data() is null
// where memory is short.
template <typename T>
class Scratch {
 public:
  explicit Scratch(int64_t count)
      : buffer_(HostAllocator().Allocate(static_cast<size_t>(std::max<int64_t>(count, 1)) *
                                         sizeof(T))) {}
  T* data() const { return buffer_ ? reinterpret_cast<T*>(buffer_->data()) : nullptr; }

 private:
  Ref<Buffer> buffer_;
};

}  // namespace weft
