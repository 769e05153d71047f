// SPDX-License-Identifier: Apache-2.0
// Copies of short rows.
#pragma once

#include <cstddef>
#include <cstring>
#include <type_traits>

#include "weft/ops/elements.h"

namespace weft::ops {

// CopyElements for one row among many: a call of memcpy takes as long as a few lines of a cache.
template <typename T>
inline void CopyRowElements(const T* from, int64_t n, T* to) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    const void* const source = from;
    void* const target = to;
    switch (static_cast<size_t>(n) * sizeof(T)) {
      case 4:
        std::memcpy(target, source, 4);
        return;
      case 8:
        std::memcpy(target, source, 8);
        return;
      case 16:
        std::memcpy(target, source, 16);
        return;
      case 32:
        std::memcpy(target, source, 32);
        return;
      case 64:
        std::memcpy(target, source, 64);
        return;
      case 128:
        std::memcpy(target, source, 128);
        return;
      default:
        break;
    }
  }
  CopyElements(from, n, to);
}

}  // namespace weft::ops
