// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/nn/channel_kernel.h"

#include <algorithm>

#include "base/vector_sets.h"

#define HWY_DISABLED_TARGETS WEFT_UNUSED_VECTOR_SETS
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weft/ops/nn/channel_kernel.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::ops::nn::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using M = hn::Mask<D>;

// Vectors of channels that are summed at a time: as many chains of additions run side by side.
constexpr int kWide = 4;

// Calls body(first channel, vectors, mask of the last vector) for all channels, kWide vectors at a
// time as long as they are whole ones.
template <typename Body>
HWY_INLINE void ForChannels(int64_t channels, const Body& body) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const M all = hn::FirstN(d, static_cast<size_t>(lanes));
  int64_t c = 0;
  for (; c + kWide * lanes <= channels; c += kWide * lanes) {
    body(c, std::integral_constant<int, kWide>(), std::false_type(), all);
  }
  for (; c + lanes <= channels; c += lanes) {
    body(c, std::integral_constant<int, 1>(), std::false_type(), all);
  }
  if (c < channels) {
    body(c, std::integral_constant<int, 1>(), std::true_type(),
         hn::FirstN(d, static_cast<size_t>(channels - c)));
  }
}

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

void Sum(const float* x, int64_t rows, int64_t channels, float* sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  ForChannels(channels, [&](int64_t c, auto vectors, auto masked, M mask) HWY_ATTR {
    V sum[vectors];
    for (int v = 0; v < vectors; ++v) sum[v] = hn::Zero(D());
    const float* from = x + c;
    for (int64_t r = 0; r < rows; ++r, from += channels) {
      for (int v = 0; v < vectors; ++v)
        sum[v] = hn::Add(sum[v], Load<masked>(mask, from + v * lanes));
    }
    for (int v = 0; v < vectors; ++v) Store<masked>(sum[v], mask, sums + c + v * lanes);
  });
}

void Moments(const float* x, int64_t rows, int64_t channels, float* sums, float* squares) {
  Sum(x, rows, channels, sums);
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const V share = hn::Set(D(), 1.0f / static_cast<float>(rows));
  ForChannels(channels, [&](int64_t c, auto vectors, auto masked, M mask) HWY_ATTR {
    V mean[vectors], square[vectors];
    for (int v = 0; v < vectors; ++v) {
      mean[v] = hn::Mul(Load<masked>(mask, sums + c + v * lanes), share);
      square[v] = hn::Zero(D());
    }
    const float* from = x + c;
    for (int64_t r = 0; r < rows; ++r, from += channels) {
      for (int v = 0; v < vectors; ++v) {
        const V centred = hn::Sub(Load<masked>(mask, from + v * lanes), mean[v]);
        square[v] = hn::MulAdd(centred, centred, square[v]);
      }
    }
    for (int v = 0; v < vectors; ++v) Store<masked>(square[v], mask, squares + c + v * lanes);
  });
}

// Calls body(element of the matrix, channel, masked, mask) for each vector, in memory's order.
template <typename Body>
HWY_INLINE void ForElements(int64_t rows, int64_t channels, const Body& body) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t rest = channels % lanes;
  const M all = hn::FirstN(d, static_cast<size_t>(lanes));
  const M some = hn::FirstN(d, static_cast<size_t>(rest));
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = r * channels;
    int64_t c = 0;
    for (; c + lanes <= channels; c += lanes) body(row + c, c, std::false_type(), all);
    if (rest > 0) body(row + c, c, std::true_type(), some);
  }
}

void Normalize(const float* x, const float* mean, const float* factor, const float* shift,
               int64_t rows, int64_t channels, float* y) {
  ForElements(rows, channels, [&](int64_t i, int64_t c, auto masked, M mask) HWY_ATTR {
    const V centred = hn::Sub(Load<masked>(mask, x + i), Load<masked>(mask, mean + c));
    Store<masked>(
        hn::MulAdd(centred, Load<masked>(mask, factor + c), Load<masked>(mask, shift + c)), mask,
        y + i);
  });
}

void GradientSums(const float* dy, const float* x, const float* mean, int64_t rows,
                  int64_t channels, float* sums, float* products) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  ForChannels(channels, [&](int64_t c, auto vectors, auto masked, M mask) HWY_ATTR {
    V middle[vectors], sum[vectors], product[vectors];
    for (int v = 0; v < vectors; ++v) {
      middle[v] = Load<masked>(mask, mean + c + v * lanes);
      sum[v] = product[v] = hn::Zero(D());
    }
    for (int64_t r = 0; r < rows; ++r) {
      for (int v = 0; v < vectors; ++v) {
        const int64_t i = r * channels + c + v * lanes;
        const V gradient = Load<masked>(mask, dy + i);
        sum[v] = hn::Add(sum[v], gradient);
        product[v] =
            hn::MulAdd(gradient, hn::Sub(Load<masked>(mask, x + i), middle[v]), product[v]);
      }
    }
    for (int v = 0; v < vectors; ++v) {
      Store<masked>(sum[v], mask, sums + c + v * lanes);
      Store<masked>(product[v], mask, products + c + v * lanes);
    }
  });
}

void Gradient(const float* dy, const float* x, const float* mean, const float* factor,
              const float* sum, const float* product, int64_t rows, int64_t channels, float* dx) {
  ForElements(rows, channels, [&](int64_t i, int64_t c, auto masked, M mask) HWY_ATTR {
    const V centred = hn::Sub(Load<masked>(mask, x + i), Load<masked>(mask, mean + c));
    const V rest = hn::Sub(Load<masked>(mask, dy + i), Load<masked>(mask, sum + c));
    Store<masked>(hn::Mul(Load<masked>(mask, factor + c),
                          hn::NegMulAdd(centred, Load<masked>(mask, product + c), rest)),
                  mask, dx + i);
  });
}

const ChannelFunctions* Functions() {
  static constexpr ChannelFunctions kFunctions = {Sum, Moments, Normalize, GradientSums, Gradient};
  return &kFunctions;
}

}  // namespace
}  // namespace weft::ops::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::ops::nn {
HWY_EXPORT(Functions);

const ChannelFunctions& GetChannelFunctions() {
  static const ChannelFunctions* const functions = HWY_DYNAMIC_DISPATCH(Functions)();
  return *functions;
}

int64_t RowsOfChunk(int64_t channels) {
  constexpr int64_t kElements = 8 << 10;
  return std::clamp<int64_t>(kElements / std::max<int64_t>(1, channels), 16, 512);
}

}  // namespace weft::ops::nn
#endif
