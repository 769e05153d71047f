// SPDX-License-Identifier: Apache-2.0
// Loops of reductions, compiled once for each instruction set and vectorised by the compiler.
#include <cstring>

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

template <typename R, typename T>
void Row(const std::byte* in, int64_t n, std::byte* accumulator) {
  ReduceRow<R, T>(in, n, accumulator);
}
template <typename R, typename T>
void Column(const std::byte* in, int64_t n, std::byte* accumulators) {
  ReduceColumn<R, T>(in, n, accumulators);
}

#define WEFT_REDUCE(R, T)                             \
  {                                                   \
    R::kName, DTypeOf<T>, { Row<R, T>, Column<R, T> } \
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
