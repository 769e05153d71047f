// SPDX-License-Identifier: Apache-2.0
// Moving elements without knowing what they mean: one code path a size instead of one a dtype.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <utility>

#include "weft/tensor/tensor.h"

namespace weft::ops {

struct Bits128 {
  uint64_t low;
  uint64_t high;
};

// Calls body.operator()<T>() with a type that moves elements of `dtype`: an unsigned integer of its
// size, Bits128, or the object type. False for kInvalid.
template <typename Body>
bool VisitElement(DType dtype, Body&& body) {
  if (dtype == DType::kString) return body.template operator()<std::string>(), true;
  if (dtype == DType::kResource) return body.template operator()<ResourceHandle>(), true;
  if (dtype == DType::kVariant) return body.template operator()<Variant>(), true;
  switch (DTypeSize(dtype)) {
    case 1:
      return body.template operator()<uint8_t>(), true;
    case 2:
      return body.template operator()<uint16_t>(), true;
    case 4:
      return body.template operator()<uint32_t>(), true;
    case 8:
      return body.template operator()<uint64_t>(), true;
    case 16:
      return body.template operator()<Bits128>(), true;
    default:
      return false;
  }
}

// Copies `n` elements that do not overlap.
template <typename T>
inline void CopyElements(const T* from, int64_t n, T* to) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    if (n > 0) std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else {
    std::copy_n(from, n, to);
  }
}

// Asks memory for the first lines of `n` elements that are soon to be read, or to be written.
template <bool kToWrite, typename T>
inline void PrefetchElements(const T* elements, int64_t n) {
  constexpr int64_t kLine = 64;
  constexpr int64_t kMostLines = 4;  // the processor goes on by itself
  const auto* const bytes = reinterpret_cast<const std::byte*>(elements);
  const int64_t end = std::min(n * static_cast<int64_t>(sizeof(T)), kMostLines * kLine);
  for (int64_t at = 0; at < end; at += kLine) __builtin_prefetch(bytes + at, kToWrite ? 1 : 0);
}

// `n` copies of an element; of zeros as fast as memory is.
template <typename T>
inline void FillElements(const T& value, int64_t n, T* to) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    static constexpr T kZero{};
    if (std::memcmp(&value, &kZero, sizeof(T)) == 0) {
      if (n > 0) std::memset(static_cast<void*>(to), 0, static_cast<size_t>(n) * sizeof(T));
      return;
    }
  }
  std::fill_n(to, n, value);
}

// CopyElements by dtype: element `from_index` of `from` on, to `to_index` of `to` on.
inline void CopyElements(const Tensor& from, int64_t from_index, int64_t n, Tensor* to,
                         int64_t to_index) {
  const size_t size = DTypeSize(from.dtype());
  if (IsPlain(from.dtype())) {
    if (n > 0) {
      std::memcpy(to->bytes() + static_cast<size_t>(to_index) * size,
                  from.bytes() + static_cast<size_t>(from_index) * size,
                  static_cast<size_t>(n) * size);
    }
    return;
  }
  VisitElement(from.dtype(), [&]<typename T>() {
    CopyElements<T>(from.bits<T>() + from_index, n, to->bits<T>() + to_index);
  });
}

// Element i becomes zero, empty or null in [begin, begin + n).
inline void ClearElements(Tensor* tensor, int64_t begin, int64_t n) {
  if (IsPlain(tensor->dtype())) {
    const size_t size = DTypeSize(tensor->dtype());
    if (n > 0) {
      std::memset(tensor->bytes() + static_cast<size_t>(begin) * size, 0,
                  static_cast<size_t>(n) * size);
    }
    return;
  }
  VisitElement(tensor->dtype(),
               [&]<typename T>() { std::fill_n(tensor->bits<T>() + begin, n, T()); });
}

}  // namespace weft::ops
