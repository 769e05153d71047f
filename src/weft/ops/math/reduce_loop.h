// SPDX-License-Identifier: Apache-2.0
// Inner loops of reductions over a functor that joins two values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "weft/ops/math/functors.h"

namespace weft::ops {

// What a reduction over T adds up in: float for narrow floats.
template <typename T>
using Accumulator = Wide<T>;

template <typename T>
struct MaximumStart {
  static constexpr T value() {
    if constexpr (std::is_floating_point_v<T>)
      return -std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::lowest();
  }
};
template <typename T>
struct MinimumStart {
  static constexpr T value() {
    if constexpr (std::is_floating_point_v<T>)
      return std::numeric_limits<T>::infinity();
    else
      return std::numeric_limits<T>::max();
  }
};

// Acc<T> is what elements of T are joined in, Start<A>() the value of an empty reduction; Map is
// applied to each element first.
struct Reducing {
  template <typename T>
  using Acc = Accumulator<T>;
};
struct SumReduction : Reducing {
  static constexpr char kName[] = "Sum";
  using Join = AddOf;
  template <typename A>
  WEFT_INLINE A Start() {
    return A(0);
  }
  template <typename A>
  WEFT_INLINE A Map(A x) {
    return x;
  }
};
// Means of integers are exact where their sum fits 64 bits.
struct MeanReduction : SumReduction {
  static constexpr char kName[] = "Mean";
  template <typename T>
  using Acc =
      std::conditional_t<kIsInteger<T> && !std::is_same_v<T, uint64_t>, int64_t, Accumulator<T>>;
};
struct ProdReduction : Reducing {
  static constexpr char kName[] = "Prod";
  using Join = MulOf;
  template <typename A>
  WEFT_INLINE A Start() {
    return A(1);
  }
  template <typename A>
  WEFT_INLINE A Map(A x) {
    return x;
  }
};
struct MaxReduction : Reducing {
  static constexpr char kName[] = "Max";
  using Join = MaximumOf;
  template <typename A>
  WEFT_INLINE A Start() {
    return MaximumStart<A>::value();
  }
  template <typename A>
  WEFT_INLINE A Map(A x) {
    return x;
  }
};
struct MinReduction : Reducing {
  static constexpr char kName[] = "Min";
  using Join = MinimumOf;
  template <typename A>
  WEFT_INLINE A Start() {
    return MinimumStart<A>::value();
  }
  template <typename A>
  WEFT_INLINE A Map(A x) {
    return x;
  }
};
struct SquareSumReduction : Reducing {
  static constexpr char kName[] = "SquareSum";
  using Join = AddOf;
  template <typename A>
  WEFT_INLINE A Start() {
    return A(0);
  }
  template <typename A>
  WEFT_INLINE A Map(A x) {
    return MulOf::Apply<A>(x, Conj(x));
  }
};

// The loops of one reduction of one type.
struct ReduceLoops {
  // *accumulator = join(*accumulator, in[0], ..., in[n - 1])
  void (*row)(const std::byte* in, int64_t n, std::byte* accumulator);
  // accumulator[i] = join(accumulator[i], in[i])
  void (*column)(const std::byte* in, int64_t n, std::byte* accumulators);
  // The first for each of `count` rows, `stride` elements from one to the next.
  void (*rows)(const std::byte* in, int64_t n, int64_t count, int64_t stride,
               std::byte* accumulators);
};

// Many lanes at once, and blocks whose results are joined, so that float sums lose few bits.
template <typename R, typename T>
WEFT_INLINE void ReduceRow(const std::byte* in_bytes, int64_t n, std::byte* accumulator) {
  using A = typename R::template Acc<T>;
  constexpr int kLanes = 32;
  constexpr int64_t kBlock = 8192;
  const T* in = reinterpret_cast<const T*>(in_bytes);
  A total = *reinterpret_cast<const A*>(accumulator);
  while (n >= kLanes) {
    const int64_t block = std::min(n, kBlock) / kLanes * kLanes;
    A lanes[kLanes];
    for (int j = 0; j < kLanes; ++j) lanes[j] = R::template Map<A>(static_cast<A>(in[j]));
    for (int64_t i = kLanes; i < block; i += kLanes) {
      for (int j = 0; j < kLanes; ++j) {
        lanes[j] =
            R::Join::template Apply<A>(lanes[j], R::template Map<A>(static_cast<A>(in[i + j])));
      }
    }
    for (int half = kLanes / 2; half > 0; half /= 2) {
      for (int j = 0; j < half; ++j)
        lanes[j] = R::Join::template Apply<A>(lanes[j], lanes[j + half]);
    }
    total = R::Join::template Apply<A>(total, lanes[0]);
    in += block;
    n -= block;
  }
  for (int64_t i = 0; i < n; ++i) {
    total = R::Join::template Apply<A>(total, R::template Map<A>(static_cast<A>(in[i])));
  }
  *reinterpret_cast<A*>(accumulator) = total;
}

template <typename R, typename T>
WEFT_INLINE void ReduceRows(const std::byte* in, int64_t n, int64_t count, int64_t stride,
                            std::byte* accumulators) {
  for (int64_t i = 0; i < count; ++i) {
    ReduceRow<R, T>(in + i * stride * static_cast<int64_t>(sizeof(T)), n, accumulators);
    accumulators += sizeof(typename R::template Acc<T>);
  }
}

template <typename R, typename T>
WEFT_INLINE void ReduceColumn(const std::byte* in_bytes, int64_t n, std::byte* accumulators) {
  using A = typename R::template Acc<T>;
  const T* __restrict in = reinterpret_cast<const T*>(in_bytes);
  A* __restrict totals = reinterpret_cast<A*>(accumulators);
  for (int64_t i = 0; i < n; ++i) {
    totals[i] = R::Join::template Apply<A>(totals[i], R::template Map<A>(static_cast<A>(in[i])));
  }
}

// Loops for the best instruction set; null if there are none. `reduction` is an R::kName.
const ReduceLoops* FindSimdReduce(const char* reduction, DType dtype);

template <typename R, typename T>
ReduceLoops MakeReduceLoops() {
  if (const ReduceLoops* simd = FindSimdReduce(R::kName, DTypeOf<T>)) return *simd;
  return {[](const std::byte* in, int64_t n, std::byte* a) { ReduceRow<R, T>(in, n, a); },
          [](const std::byte* in, int64_t n, std::byte* a) { ReduceColumn<R, T>(in, n, a); },
          ReduceRows<R, T>};
}

}  // namespace weft::ops
