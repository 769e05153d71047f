// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/nn/pool_kernel.h"

#include <limits>

#include "base/vector_sets.h"

#define HWY_DISABLED_TARGETS WEFT_UNUSED_VECTOR_SETS
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

// Calls body.operator()<masked, taps>(c, mask, i) for the vectors c of channels of all windows i;
// `taps` is their number where that is a usual one, so that loops over them are unrolled, or 0.
template <int taps, typename Body>
HWY_INLINE void ForEachVectorOf(const PoolRun& run, const Body& body) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const M all = hn::FirstN(d, static_cast<size_t>(lanes));
  const int64_t whole = run.channels / lanes * lanes;
  for (int64_t i = 0; i < run.windows; ++i) {
    for (int64_t c = 0; c < whole; c += lanes) body.template operator()<false, taps>(c, all, i);
    if (whole < run.channels) {
      body.template operator()<true, taps>(
          whole, hn::FirstN(d, static_cast<size_t>(run.channels - whole)), i);
    }
  }
}
template <typename Body>
HWY_INLINE void ForEachVector(const PoolRun& run, const Body& body) {
  if (run.count == 4) return ForEachVectorOf<4>(run, body);
  if (run.count == 9) return ForEachVectorOf<9>(run, body);
  ForEachVectorOf<0>(run, body);
}

void Largest(const PoolRun& run, const float* in, float* y) {
  ForEachVector(run, [&]<bool masked, int taps>(int64_t c, M mask, int64_t i) HWY_ATTR {
    const float* from = in + i * run.step + c;
    V best = hn::Set(D(), std::numeric_limits<float>::lowest());
    for (int64_t t = 0; t < (taps > 0 ? taps : run.count); ++t) {
      const V value = Load<masked>(mask, from + run.taps[t]);
      best = hn::IfThenElse(hn::Or(hn::Lt(best, value), hn::IsNaN(value)), value, best);
    }
    Store<masked>(best, mask, y + i * run.channels + c);
  });
}

void AddToLargest(const PoolRun& run, const float* in, const float* gradient, float* out) {
  ForEachVector(run, [&]<bool masked, int taps>(int64_t c, M mask, int64_t i) HWY_ATTR {
    const D d;
    const float* from = in + i * run.step + c;
    float* to = out + i * run.step + c;
    const int64_t count = taps > 0 ? taps : run.count;
    V best = Load<masked>(mask, from + run.taps[0]);
    V tap = hn::Zero(d);  // of the best; numbers of taps are exact in float
    for (int64_t t = 1; t < count; ++t) {
      const V value = Load<masked>(mask, from + run.taps[t]);
      const M better = hn::Lt(best, value);
      best = hn::IfThenElse(better, value, best);
      tap = hn::IfThenElse(better, hn::Set(d, static_cast<float>(t)), tap);
    }
    const V add = Load<masked>(mask, gradient + i * run.channels + c);
    for (int64_t t = 0; t < count; ++t) {
      const M is_best = hn::Eq(tap, hn::Set(d, static_cast<float>(t)));
      float* at = to + run.taps[t];
      Store<masked>(hn::Add(Load<masked>(mask, at), hn::IfThenElseZero(is_best, add)), mask, at);
    }
  });
}

void Average(const PoolRun& run, const float* in, float* y) {
  const V size = hn::Set(D(), static_cast<float>(run.count));
  ForEachVector(run, [&]<bool masked, int taps>(int64_t c, M mask, int64_t i) HWY_ATTR {
    const float* from = in + i * run.step + c;
    V sum = hn::Zero(D());
    for (int64_t t = 0; t < (taps > 0 ? taps : run.count); ++t) {
      sum = hn::Add(sum, Load<masked>(mask, from + run.taps[t]));
    }
    Store<masked>(hn::Div(sum, size), mask, y + i * run.channels + c);
  });
}

void AddAverage(const PoolRun& run, const float* gradient, float* out) {
  const V size = hn::Set(D(), static_cast<float>(run.count));
  ForEachVector(run, [&]<bool masked, int taps>(int64_t c, M mask, int64_t i) HWY_ATTR {
    float* to = out + i * run.step + c;
    const V part = hn::Div(Load<masked>(mask, gradient + i * run.channels + c), size);
    for (int64_t t = 0; t < (taps > 0 ? taps : run.count); ++t) {
      float* at = to + run.taps[t];
      Store<masked>(hn::Add(Load<masked>(mask, at), part), mask, at);
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
