// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/nn/pool_kernel.h"

#include <limits>

#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weft/ops/nn/pool_kernel.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::ops::nn::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

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

template <bool masked>
HWY_INLINE void LargestOf(const float* const* in, int64_t taps, int64_t c, M mask, float* y) {
  V best = hn::Set(D(), std::numeric_limits<float>::lowest());
  for (int64_t t = 0; t < taps; ++t) {
    const V value = Load<masked>(mask, in[t] + c);
    best = hn::IfThenElse(hn::Or(hn::Lt(best, value), hn::IsNaN(value)), value, best);
  }
  Store<masked>(best, mask, y + c);
}

template <bool masked>
HWY_INLINE void AddToLargestOf(const float* const* in, int64_t taps, int64_t c, M mask,
                               const float* gradient, float* const* out) {
  const D d;
  V best = Load<masked>(mask, in[0] + c);
  V tap = hn::Zero(d);  // of the best; numbers of taps are exact in float
  for (int64_t t = 1; t < taps; ++t) {
    const V value = Load<masked>(mask, in[t] + c);
    const M better = hn::Lt(best, value);
    best = hn::IfThenElse(better, value, best);
    tap = hn::IfThenElse(better, hn::Set(d, static_cast<float>(t)), tap);
  }
  const V add = Load<masked>(mask, gradient + c);
  for (int64_t t = 0; t < taps; ++t) {
    const M is_best = hn::Eq(tap, hn::Set(d, static_cast<float>(t)));
    Store<masked>(hn::Add(Load<masked>(mask, out[t] + c), hn::IfThenElseZero(is_best, add)), mask,
                  out[t] + c);
  }
}

// Calls body.operator()<masked>(c, mask) for the vectors of the channels.
template <typename Body>
HWY_INLINE void ForEachVector(int64_t channels, const Body& body) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const M all = hn::FirstN(d, static_cast<size_t>(lanes));
  int64_t c = 0;
  for (; c + lanes <= channels; c += lanes) body.template operator()<false>(c, all);
  if (c < channels)
    body.template operator()<true>(c, hn::FirstN(d, static_cast<size_t>(channels - c)));
}

void Largest(const float* const* in, int64_t taps, int64_t channels, float* y) {
  ForEachVector(channels, [&]<bool masked>(int64_t c, M mask)
                              HWY_ATTR { LargestOf<masked>(in, taps, c, mask, y); });
}

void AddToLargest(const float* const* in, int64_t taps, int64_t channels, const float* gradient,
                  float* const* out) {
  ForEachVector(channels, [&]<bool masked>(int64_t c, M mask) HWY_ATTR {
    AddToLargestOf<masked>(in, taps, c, mask, gradient, out);
  });
}

void Average(const float* const* in, int64_t taps, int64_t channels, float* y) {
  const V count = hn::Set(D(), static_cast<float>(taps));
  ForEachVector(channels, [&]<bool masked>(int64_t c, M mask) HWY_ATTR {
    V sum = hn::Zero(D());
    for (int64_t t = 0; t < taps; ++t) sum = hn::Add(sum, Load<masked>(mask, in[t] + c));
    Store<masked>(hn::Div(sum, count), mask, y + c);
  });
}

void AddAverage(int64_t taps, int64_t channels, const float* gradient, float* const* out) {
  const V count = hn::Set(D(), static_cast<float>(taps));
  ForEachVector(channels, [&]<bool masked>(int64_t c, M mask) HWY_ATTR {
    const V part = hn::Div(Load<masked>(mask, gradient + c), count);
    for (int64_t t = 0; t < taps; ++t) {
      Store<masked>(hn::Add(Load<masked>(mask, out[t] + c), part), mask, out[t] + c);
    }
  });
}

const PoolFunctions* Functions() {
  static constexpr PoolFunctions kFunctions = {Largest, AddToLargest, Average, AddAverage};
  return &kFunctions;
}

}  // namespace
}  // namespace weft::ops::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::ops::nn {
HWY_EXPORT(Functions);
const PoolFunctions& GetPoolFunctions() {
  static const PoolFunctions* const functions = HWY_DYNAMIC_DISPATCH(Functions)();
  return *functions;
}
}  // namespace weft::ops::nn
#endif
