// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/depthwise_kernel.h"

#include <algorithm>
#include <type_traits>

#include "base/vector_sets.h"

#define HWY_DISABLED_TARGETS WEFT_UNUSED_VECTOR_SETS
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weft/device/cpu/depthwise_kernel.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::HWY_NAMESPACE {
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

// The positions [begin, end) of [0, count) whose pixel lies in [0, width).
struct Span {
  int64_t begin;
  int64_t end;
  Span(int64_t offset, int64_t step, int64_t width, int64_t count)
      : begin(offset >= 0 ? 0 : std::min((step - 1 - offset) / step, count)),
        end(offset >= width ? begin
                            : std::clamp<int64_t>((width - 1 - offset) / step + 1, begin, count)) {}
};

// True if the nine taps are three rows of three neighbours.
bool IsSquareOfThree(const DepthwiseRow& row) {
  for (int t = 0; t < 9; ++t) {
    const DepthwiseTap& first = row.taps[t / 3 * 3];
    if (row.taps[t].pixels != first.pixels || row.taps[t].offset != first.offset + t % 3) {
      return false;
    }
  }
  return true;
}

// Four neighbouring positions of such a square from `pixels` of its taps: each pixel is read once
// for all of them, and each sum is taken in the order of the taps.
template <bool masked>
HWY_INLINE void SumFour(const float* const* pixels, const V* weights, int64_t channels, M mask,
                        float* out, int64_t out_step) {
  constexpr int kPositions = 4;
  V sums[kPositions];
  for (V& sum : sums) sum = hn::Zero(D());
  for (int r = 0; r < 3; ++r) {
    V seen[kPositions + 2];
    for (int i = 0; i < kPositions + 2; ++i) {
      seen[i] = Load<masked>(mask, pixels[3 * r] + i * channels);
    }
    for (int k = 0; k < 3; ++k) {
      for (int j = 0; j < kPositions; ++j) {
        sums[j] = hn::MulAdd(seen[j + k], weights[3 * r + k], sums[j]);
      }
    }
  }
  for (int j = 0; j < kPositions; ++j) Store<masked>(sums[j], mask, out + j * out_step);
}

// Positions [begin, end), for which every tap sees a pixel. `fixed` taps, or as many as the row
// says.
template <bool masked, int fixed>
HWY_INLINE void SumInside(const DepthwiseRow& row, int64_t begin, int64_t end, int64_t c, M mask,
                          float* out, int64_t out_step) {
  if constexpr (fixed > 0) {
    V weights[fixed];
    const float* pixels[fixed];
    for (int t = 0; t < fixed; ++t) {
      weights[t] = Load<masked>(mask, row.taps[t].weights + c);
      pixels[t] = row.taps[t].pixels + row.taps[t].offset * row.channels + c;
    }
    int64_t j = begin;
    if constexpr (fixed == 9) {
      if (row.step == 1 && IsSquareOfThree(row)) {
        for (; j + 4 <= end; j += 4) {
          const float* at[fixed];
          for (int t = 0; t < fixed; ++t) at[t] = pixels[t] + j * row.channels;
          SumFour<masked>(at, weights, row.channels, mask, out + j * out_step + c, out_step);
        }
      }
    }
    for (; j < end; ++j) {
      V sum = hn::Zero(D());
      for (int t = 0; t < fixed; ++t) {
        sum = hn::MulAdd(Load<masked>(mask, pixels[t] + j * row.step * row.channels), weights[t],
                         sum);
      }
      Store<masked>(sum, mask, out + j * out_step + c);
    }
    return;
  }
  for (int64_t j = begin; j < end; ++j) {
    V sum = hn::Zero(D());
    for (int64_t t = 0; t < row.count; ++t) {
      const DepthwiseTap& tap = row.taps[t];
      sum = hn::MulAdd(
          Load<masked>(mask, tap.pixels + (j * row.step + tap.offset) * row.channels + c),
          Load<masked>(mask, tap.weights + c), sum);
    }
    Store<masked>(sum, mask, out + j * out_step + c);
  }
}

// Positions [begin, end), of which taps may see nothing.
template <bool masked>
HWY_INLINE void SumAtBorder(const DepthwiseRow& row, int64_t begin, int64_t end, int64_t c, M mask,
                            float* out, int64_t out_step) {
  for (int64_t j = begin; j < end; ++j) {
    V sum = hn::Zero(D());
    for (int64_t t = 0; t < row.count; ++t) {
      const DepthwiseTap& tap = row.taps[t];
      const int64_t x = j * row.step + tap.offset;
      if (x < 0 || x >= row.width) continue;
      sum = hn::MulAdd(Load<masked>(mask, tap.pixels + x * row.channels + c),
                       Load<masked>(mask, tap.weights + c), sum);
    }
    Store<masked>(sum, mask, out + j * out_step + c);
  }
}

void SumRow(const DepthwiseRow& row, int64_t count, float* out, int64_t out_step) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t begin = 0, end = count;
  for (int64_t t = 0; t < row.count; ++t) {
    const Span span(row.taps[t].offset, row.step, row.width, count);
    begin = std::max(begin, span.begin);
    end = std::min(end, span.end);
  }
  if (end <= begin) begin = end = count;
  const auto run = [&](int64_t c, auto masked, M mask) HWY_ATTR {
    SumAtBorder<masked>(row, 0, begin, c, mask, out, out_step);
    if (row.count == 9) {
      SumInside<masked, 9>(row, begin, end, c, mask, out, out_step);
    } else {
      SumInside<masked, 0>(row, begin, end, c, mask, out, out_step);
    }
    SumAtBorder<masked>(row, end, count, c, mask, out, out_step);
  };
  const M all = hn::FirstN(d, static_cast<size_t>(lanes));
  int64_t c = 0;
  for (; c + lanes <= row.channels; c += lanes) run(c, std::false_type(), all);
  if (c < row.channels) {
    run(c, std::true_type(), hn::FirstN(d, static_cast<size_t>(row.channels - c)));
  }
}

template <int vectors, bool masked>
HWY_INLINE void AddProductsOf(const float* pixels, int64_t step, const float* gradient,
                              int64_t count, int64_t channels, M mask, float* sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  V sum[vectors];
  for (int v = 0; v < vectors; ++v) sum[v] = Load<masked>(mask, sums + v * lanes);
  for (int64_t j = 0; j < count; ++j, pixels += step * channels, gradient += channels) {
    for (int v = 0; v < vectors; ++v) {
      sum[v] = hn::MulAdd(Load<masked>(mask, pixels + v * lanes),
                          Load<masked>(mask, gradient + v * lanes), sum[v]);
    }
  }
  for (int v = 0; v < vectors; ++v) Store<masked>(sum[v], mask, sums + v * lanes);
}

void AddProducts(const float* pixels, int64_t offset, int64_t step, int64_t width,
                 const float* gradient, int64_t count, int64_t channels, float* sums) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const Span span(offset, step, width, count);
  const int64_t n = span.end - span.begin;
  if (n <= 0) return;
  pixels += (span.begin * step + offset) * channels;
  gradient += span.begin * channels;
  constexpr int kWide = 4;
  const M all = hn::FirstN(d, static_cast<size_t>(lanes));
  int64_t c = 0;
  for (; c + kWide * lanes <= channels; c += kWide * lanes)
    AddProductsOf<kWide, false>(pixels + c, step, gradient + c, n, channels, all, sums + c);
  for (; c + lanes <= channels; c += lanes)
    AddProductsOf<1, false>(pixels + c, step, gradient + c, n, channels, all, sums + c);
  if (c < channels) {
    AddProductsOf<1, true>(pixels + c, step, gradient + c, n, channels,
                           hn::FirstN(d, static_cast<size_t>(channels - c)), sums + c);
  }
}

const DepthwiseFunctions* Functions() {
  static constexpr DepthwiseFunctions kFunctions = {SumRow, AddProducts};
  return &kFunctions;
}

}  // namespace
}  // namespace weft::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {
HWY_EXPORT(Functions);
const DepthwiseFunctions& GetDepthwiseFunctions() {
  static const DepthwiseFunctions* const functions = HWY_DYNAMIC_DISPATCH(Functions)();
  return *functions;
}
}  // namespace weft
#endif
