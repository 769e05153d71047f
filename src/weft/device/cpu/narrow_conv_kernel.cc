// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/narrow_conv_kernel.h"

#include <algorithm>

#include "base/vector_sets.h"

#define HWY_DISABLED_TARGETS WEFT_UNUSED_VECTOR_SETS
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weft/device/cpu/narrow_conv_kernel.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

// Rows and vectors of a block of sums that stays in registers.
constexpr int kRows = 6;
constexpr int kVectors = 2;

template <bool masked>
HWY_INLINE V Load(M mask, const float* from) {
  const D d;
  return masked ? hn::MaskedLoad(mask, d, from) : hn::LoadU(d, from);
}
template <bool masked>
HWY_INLINE void Store(V v, M mask, float* to) {
  const D d;
  if (masked) {
    hn::BlendedStore(v, mask, d, to);
  } else {
    hn::StoreU(v, d, to);
  }
}

// `rows` outputs side by side, `vectors` vectors of their channels, of which the last may be
// masked.
template <int rows, int vectors, bool masked>
HWY_INLINE void ForwardBlock(const NarrowRow& row, const float* patch, const float* filter, M mask,
                             float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  V sums[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(D());
  }
  for (int64_t run = 0; run < row.runs; ++run, patch += row.run_step) {
    for (int64_t i = 0; i < row.length; ++i, filter += row.outputs) {
      V weights[vectors];
      for (int v = 0; v < vectors - 1; ++v) weights[v] = hn::LoadU(D(), filter + v * lanes);
      weights[vectors - 1] = Load<masked>(mask, filter + (vectors - 1) * lanes);
      for (int r = 0; r < rows; ++r) {
        const V factor = hn::Set(D(), patch[r * row.step + i]);
        for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(factor, weights[v], sums[r][v]);
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    float* const to = out + r * row.outputs;
    for (int v = 0; v < vectors - 1; ++v) hn::StoreU(sums[r][v], D(), to + v * lanes);
    Store<masked>(sums[r][vectors - 1], mask, to + (vectors - 1) * lanes);
  }
}

template <int vectors, bool masked>
void ForwardColumns(const NarrowRow& row, const float* filter, int64_t count, M mask, float* out) {
  int64_t x = 0;
  for (; x + kRows <= count; x += kRows) {
    ForwardBlock<kRows, vectors, masked>(row, row.image + x * row.step, filter, mask,
                                         out + x * row.outputs);
  }
  for (; x < count; ++x) {
    ForwardBlock<1, vectors, masked>(row, row.image + x * row.step, filter, mask,
                                     out + x * row.outputs);
  }
}

// `rows` elements of a patch side by side, as above.
template <int rows, int vectors, bool masked>
HWY_INLINE void ProductBlock(const NarrowRow& row, const float* element, const float* gradients,
                             int64_t count, M mask, float* sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  V sum[rows][vectors];
  for (int r = 0; r < rows; ++r) {
    const float* const from = sums + r * row.outputs;
    for (int v = 0; v < vectors - 1; ++v) sum[r][v] = hn::LoadU(D(), from + v * lanes);
    sum[r][vectors - 1] = Load<masked>(mask, from + (vectors - 1) * lanes);
  }
  for (int64_t x = 0; x < count; ++x, element += row.step, gradients += row.outputs) {
    V gradient[vectors];
    for (int v = 0; v < vectors - 1; ++v) gradient[v] = hn::LoadU(D(), gradients + v * lanes);
    gradient[vectors - 1] = Load<masked>(mask, gradients + (vectors - 1) * lanes);
    for (int r = 0; r < rows; ++r) {
      const V factor = hn::Set(D(), element[r]);
      for (int v = 0; v < vectors; ++v) sum[r][v] = hn::MulAdd(factor, gradient[v], sum[r][v]);
    }
  }
  for (int r = 0; r < rows; ++r) {
    float* const to = sums + r * row.outputs;
    for (int v = 0; v < vectors - 1; ++v) hn::StoreU(sum[r][v], D(), to + v * lanes);
    Store<masked>(sum[r][vectors - 1], mask, to + (vectors - 1) * lanes);
  }
}

template <int vectors, bool masked>
void ProductColumns(const NarrowRow& row, const float* gradients, int64_t count, M mask,
                    float* sums) {
  for (int64_t run = 0; run < row.runs; ++run) {
    const float* const elements = row.image + run * row.run_step;
    float* const to = sums + run * row.length * row.outputs;
    int64_t i = 0;
    for (; i + kRows <= row.length; i += kRows) {
      ProductBlock<kRows, vectors, masked>(row, elements + i, gradients, count, mask,
                                           to + i * row.outputs);
    }
    // What is left of the usual runs: 7 x 3, 3 x 3, 5 x 1 and 3 x 1 elements.
    if (i + 5 <= row.length) {
      ProductBlock<5, vectors, masked>(row, elements + i, gradients, count, mask,
                                       to + i * row.outputs);
      i += 5;
    }
    if (i + 3 <= row.length) {
      ProductBlock<3, vectors, masked>(row, elements + i, gradients, count, mask,
                                       to + i * row.outputs);
      i += 3;
    }
    for (; i < row.length; ++i) {
      ProductBlock<1, vectors, masked>(row, elements + i, gradients, count, mask,
                                       to + i * row.outputs);
    }
  }
}

// Calls whole(c) for blocks of kVectors whole vectors, then for what is left one(c) and part(c,
// mask) with a vector each.
template <typename Whole, typename One, typename Part>
HWY_INLINE void ForColumns(int64_t outputs, const Whole& whole, const One& one, const Part& part) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = 0;
  for (; c + kVectors * lanes <= outputs; c += kVectors * lanes) whole(c);
  for (; c + lanes <= outputs; c += lanes) one(c);
  if (c < outputs) part(c, hn::FirstN(d, static_cast<size_t>(outputs - c)));
}

void Forward(const NarrowRow& row, const float* filter, int64_t count, float* out) {
  const M all = hn::FirstN(D(), hn::Lanes(D()));
  ForColumns(
      row.outputs,
      [&](int64_t c)
          HWY_ATTR { ForwardColumns<kVectors, false>(row, filter + c, count, all, out + c); },
      [&](int64_t c) HWY_ATTR { ForwardColumns<1, false>(row, filter + c, count, all, out + c); },
      [&](int64_t c, M mask)
          HWY_ATTR { ForwardColumns<1, true>(row, filter + c, count, mask, out + c); });
}

void AddProducts(const NarrowRow& row, const float* gradients, int64_t count, float* sums) {
  const M all = hn::FirstN(D(), hn::Lanes(D()));
  ForColumns(
      row.outputs,
      [&](int64_t c)
          HWY_ATTR { ProductColumns<kVectors, false>(row, gradients + c, count, all, sums + c); },
      [&](int64_t c)
          HWY_ATTR { ProductColumns<1, false>(row, gradients + c, count, all, sums + c); },
      [&](int64_t c, M mask)
          HWY_ATTR { ProductColumns<1, true>(row, gradients + c, count, mask, sums + c); });
}

const NarrowFunctions* Functions() {
  static constexpr NarrowFunctions kFunctions = {Forward, AddProducts};
  return &kFunctions;
}

}  // namespace
}  // namespace weft::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {
HWY_EXPORT(Functions);
const NarrowFunctions& GetNarrowFunctions() {
  static const NarrowFunctions* const functions = HWY_DYNAMIC_DISPATCH(Functions)();
  return *functions;
}
}  // namespace weft
#endif
