// SPDX-License-Identifier: Apache-2.0
// Loops of tile bodies over a functor (functors.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "weft/kernel/tile.h"
#include "weft/ops/math/functors.h"

namespace weft::ops {

using TileFunction = decltype(TileBody::run);

// Outputs may be one of the operands, element for element: no iteration reads what another wrote.
#if defined(__clang__)
#define WEFT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define WEFT_INDEPENDENT _Pragma("GCC ivdep")
#endif

template <typename Op, typename T>
WEFT_INLINE void BinaryLoop(const std::byte* a_bytes, int a_step, const std::byte* b_bytes,
                            int b_step, std::byte* out_bytes, int64_t n) {
  using R = decltype(Op::template Apply<T>(T(), T()));
  const T* a = reinterpret_cast<const T*>(a_bytes);
  const T* b = reinterpret_cast<const T*>(b_bytes);
  R* out = reinterpret_cast<R*>(out_bytes);
  if (a_step != 0 && b_step != 0) {
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Op::template Apply<T>(a[i], b[i]);
  } else if (a_step != 0) {
    const T y = *b;
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Op::template Apply<T>(a[i], y);
  } else if (b_step != 0) {
    const T x = *a;
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Op::template Apply<T>(x, b[i]);
  } else {
    const R value = Op::template Apply<T>(*a, *b);
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  }
}

template <typename Op, typename T>
WEFT_INLINE void UnaryLoop(const std::byte* a_bytes, int a_step, std::byte* out_bytes, int64_t n) {
  using R = decltype(Op::template Apply<T>(T()));
  const T* a = reinterpret_cast<const T*>(a_bytes);
  R* out = reinterpret_cast<R*>(out_bytes);
  if (a_step != 0) {
    WEFT_INDEPENDENT
    for (int64_t i = 0; i < n; ++i) out[i] = Op::template Apply<T>(a[i]);
  } else {
    const R value = Op::template Apply<T>(*a);
    for (int64_t i = 0; i < n; ++i) out[i] = value;
  }
}

// The loop made for the best instruction set of this machine; null if there is none for the pair.
// `functor` is an Op::kName.
TileFunction FindSimdTile(const char* functor, DType dtype);

// Tile bodies of Op for each type of the list.
template <typename Op, typename... Ts>
std::vector<TileBody> BinaryTiles(TypeList<Ts...>) {
  const auto make = []<typename T>() {
    TileFunction run = FindSimdTile(Op::kName, DTypeOf<T>);
    if (run == nullptr) {
      run = [](const std::byte* a, int a_step, const std::byte* b, int b_step, std::byte* out,
               int64_t n) { BinaryLoop<Op, T>(a, a_step, b, b_step, out, n); };
    }
    using R = decltype(Op::template Apply<T>(T(), T()));
    return TileBody{.input = DTypeOf<T>, .output = DTypeOf<R>, .num_inputs = 2, .run = run};
  };
  return {make.template operator()<Ts>()...};
}

template <typename Op, typename... Ts>
std::vector<TileBody> UnaryTiles(TypeList<Ts...>) {
  const auto make = []<typename T>() {
    TileFunction run = FindSimdTile(Op::kName, DTypeOf<T>);
    if (run == nullptr) {
      run = [](const std::byte* a, int a_step, const std::byte*, int, std::byte* out, int64_t n) {
        UnaryLoop<Op, T>(a, a_step, out, n);
      };
    }
    using R = decltype(Op::template Apply<T>(T()));
    return TileBody{.input = DTypeOf<T>, .output = DTypeOf<R>, .num_inputs = 1, .run = run};
  };
  return {make.template operator()<Ts>()...};
}

}  // namespace weft::ops
