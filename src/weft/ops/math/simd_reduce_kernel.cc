// SPDX-License-Identifier: Apache-2.0
// Loops of reductions, compiled once for each instruction set and vectorised by the compiler.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/vector_sets.h"
#include "weft/ops/math/reduce_loop.h"

#define HWY_DISABLED_TARGETS (WEFT_UNUSED_VECTOR_SETS | HWY_AVX3)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weft/ops/math/simd_reduce_kernel.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

#ifndef WEFT_OPS_MATH_SIMD_REDUCE_ENTRY
#define WEFT_OPS_MATH_SIMD_REDUCE_ENTRY
namespace weft::ops {
namespace {
struct ReduceEntry {
  const char* reduction;
  DType dtype;
  ReduceLoops loops;
};
struct ReduceTable {
  const ReduceEntry* entries;
  size_t size;
};
}  // namespace
}  // namespace weft::ops
#endif

HWY_BEFORE_NAMESPACE();
namespace weft::ops::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int kLanes = 32;  // as in ReduceRow

// Halves joined until one is left: ((a[0] + a[2]) + (a[1] + a[3])) of four.
template <int kCount, int kStride = 1, typename V, typename Add>
WEFT_INLINE V Halved(const V* a, const Add& add) {
  if constexpr (kCount == 1) {
    return a[0];
  } else {
    return add(Halved<kCount / 2, 2 * kStride>(a, add),
               Halved<kCount / 2, 2 * kStride>(a + kStride, add));
  }
}

// ReduceRows of sums, with the same rounding: lanes that the compiler keeps in memory make each row
// wait for what it has just stored.
template <typename R, typename T>
void AddRows(const std::byte* in, int64_t n, int64_t count, int64_t stride, std::byte* totals) {
  constexpr int64_t kBlock = 8192;
  const hn::CappedTag<T, 8> d;
  constexpr int kWidth = static_cast<int>(hn::MaxLanes(hn::CappedTag<T, 8>()));
  constexpr int kVectors = kLanes / kWidth;
  using V = hn::Vec<decltype(d)>;
  const auto load = [&](const T* from) {
    const V v = hn::LoadU(d, from);
    return std::is_same_v<R, SquareSumReduction> ? hn::Mul(v, v) : v;
  };
  for (int64_t row = 0; row < count; ++row) {
    const T* at = reinterpret_cast<const T*>(in) + row * stride;
    T total = reinterpret_cast<T*>(totals)[row];
    int64_t left = n;
    while (left >= kLanes) {
      const int64_t block = std::min(left, kBlock) / kLanes * kLanes;
      V lanes[kVectors];
      for (int k = 0; k < kVectors; ++k) lanes[k] = load(at + k * kWidth);
      for (int64_t i = kLanes; i < block; i += kLanes) {
        for (int k = 0; k < kVectors; ++k) {
          lanes[k] = hn::Add(lanes[k], load(at + i + k * kWidth));
        }
      }
      HWY_ALIGN T last[kWidth];
      hn::Store(Halved<kVectors>(lanes, [](V x, V y) { return hn::Add(x, y); }), d, last);
      total += Halved<kWidth>(last, [](T x, T y) { return x + y; });
      at += block;
      left -= block;
    }
    for (int64_t i = 0; i < left; ++i) total += R::template Map<T>(at[i]);
    reinterpret_cast<T*>(totals)[row] = total;
  }
}

template <typename R, typename T>
void Rows(const std::byte* in, int64_t n, int64_t count, int64_t stride, std::byte* accumulators) {
  if constexpr (std::is_same_v<typename R::Join, AddOf> && std::is_floating_point_v<T>) {
    AddRows<R, T>(in, n, count, stride, accumulators);
  } else {
    ReduceRows<R, T>(in, n, count, stride, accumulators);
  }
}
template <typename R, typename T>
void Row(const std::byte* in, int64_t n, std::byte* accumulator) {
  Rows<R, T>(in, n, 1, n, accumulator);
}
template <typename R, typename T>
void Column(const std::byte* in, int64_t n, std::byte* accumulators) {
  ReduceColumn<R, T>(in, n, accumulators);
}

#define WEFT_REDUCE(R, T)                                         \
  {                                                               \
    R::kName, DTypeOf<T>, { Row<R, T>, Column<R, T>, Rows<R, T> } \
  }
constexpr ReduceEntry kEntries[] = {
    WEFT_REDUCE(SumReduction, float),       WEFT_REDUCE(SumReduction, double),
    WEFT_REDUCE(MeanReduction, float),      WEFT_REDUCE(MeanReduction, double),
    WEFT_REDUCE(ProdReduction, float),      WEFT_REDUCE(ProdReduction, double),
    WEFT_REDUCE(MaxReduction, float),       WEFT_REDUCE(MaxReduction, double),
    WEFT_REDUCE(MinReduction, float),       WEFT_REDUCE(MinReduction, double),
    WEFT_REDUCE(SquareSumReduction, float), WEFT_REDUCE(SquareSumReduction, double),
    WEFT_REDUCE(SumReduction, int32_t),     WEFT_REDUCE(SumReduction, int64_t),
};
#undef WEFT_REDUCE

ReduceTable Loops() { return {kEntries, sizeof(kEntries) / sizeof(kEntries[0])}; }

}  // namespace
}  // namespace weft::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::ops {
HWY_EXPORT(Loops);

const ReduceLoops* FindSimdReduce(const char* reduction, DType dtype) {
  const ReduceTable table = HWY_DYNAMIC_DISPATCH(Loops)();
  for (size_t i = 0; i < table.size; ++i) {
    const ReduceEntry& entry = table.entries[i];
    if (entry.dtype == dtype && std::strcmp(entry.reduction, reduction) == 0) return &entry.loops;
  }
  return nullptr;
}

}  // namespace weft::ops
#endif
