// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/winograd_kernel.h"

#include <algorithm>

#include "base/vector_sets.h"

#define HWY_DISABLED_TARGETS WEFT_UNUSED_VECTOR_SETS
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weft/device/cpu/winograd_kernel.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kTile = static_cast<int>(kWinogradTile);
constexpr int kRows = 6;     // of a register block of products
constexpr int kVectors = 2;  // of a panel
// The matrix G of the filter's transform: powers of the points, each row with its scale.
constexpr float kPoints[kTile - 1] = {0, 1, -1, 2, -2};
constexpr float kScales[kTile - 1] = {0.25f, -1.0f / 6, -1.0f / 6, 1.0f / 24, 1.0f / 24};

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

int64_t LaneCount() { return static_cast<int64_t>(hn::Lanes(D())); }

// n elements, or fewer than a vector has, filled up with zeros.
HWY_INLINE V LoadPart(const float* from, int64_t n) {
  const D d;
  if (n >= static_cast<int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN float padded[hn::MaxLanes(D())] = {};
  for (int64_t i = 0; i < n; ++i) padded[i] = from[i];
  return hn::Load(d, padded);
}
HWY_INLINE void StorePart(V v, int64_t n, float* to) {
  const D d;
  if (n >= static_cast<int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, to);
    return;
  }
  HWY_ALIGN float padded[hn::MaxLanes(D())];
  hn::Store(v, d, padded);
  for (int64_t i = 0; i < n; ++i) to[i] = padded[i];
}

HWY_INLINE V Scaled(float factor, V v) { return hn::Mul(hn::Set(D(), factor), v); }
HWY_INLINE V AddScaled(V sum, float factor, V v) {
  return hn::MulAdd(hn::Set(D(), factor), v, sum);
}

// One column of B^T d.
HWY_INLINE void InputColumn(const V (&d)[kTile], V (&x)[kTile]) {
  const V even = AddScaled(d[4], -4, d[2]);  // d4 - 4 d2
  const V odd = AddScaled(d[3], -4, d[1]);   // d3 - 4 d1
  const V even2 = hn::Sub(d[4], d[2]);
  const V odd2 = hn::Sub(d[3], d[1]);
  x[0] = AddScaled(AddScaled(d[4], -5, d[2]), 4, d[0]);
  x[1] = hn::Add(even, odd);
  x[2] = hn::Sub(even, odd);
  x[3] = AddScaled(even2, 2, odd2);
  x[4] = AddScaled(even2, -2, odd2);
  x[5] = AddScaled(AddScaled(d[5], -5, d[3]), 4, d[1]);
}

// One column of A^T m: tile - size + 1 outputs.
template <int outputs>
HWY_INLINE void OutputColumn(const V (&x)[kTile], V (&y)[outputs]) {
  const V sum1 = hn::Add(x[1], x[2]), difference1 = hn::Sub(x[1], x[2]);
  const V sum2 = hn::Add(x[3], x[4]), difference2 = hn::Sub(x[3], x[4]);
  y[0] = hn::Add(hn::Add(x[0], sum1), sum2);
  y[1] = AddScaled(difference1, 2, difference2);
  if constexpr (outputs == 4) {
    y[2] = AddScaled(sum1, 4, sum2);
    y[3] = AddScaled(hn::Add(difference1, x[5]), 8, difference2);
  } else {
    y[1] = hn::Add(y[1], x[5]);
  }
}

// One column of A y, the transpose of the above.
template <int outputs>
HWY_INLINE void GradientColumn(const V (&y)[outputs], V (&x)[kTile]) {
  V even = y[0], odd = y[1], even2 = y[0], odd2 = Scaled(2, y[1]);
  if constexpr (outputs == 4) {
    even = hn::Add(even, y[2]);
    odd = hn::Add(odd, y[3]);
    even2 = AddScaled(even2, 4, y[2]);
    odd2 = AddScaled(odd2, 8, y[3]);
  }
  x[0] = y[0];
  x[1] = hn::Add(even, odd);
  x[2] = hn::Sub(even, odd);
  x[3] = hn::Add(even2, odd2);
  x[4] = hn::Sub(even2, odd2);
  x[5] = y[outputs - 1];
}

// Where the elements of a tile's positions begin; null where they lie outside of the image.
template <int size>
struct Positions {
  const float* at[size][size];
  Positions(const float* from, const TileImages& images, const TilePlace& place) {
    for (int i = 0; i < size; ++i) {
      const int64_t y = place.top + i;
      for (int j = 0; j < size; ++j) {
        const int64_t x = place.left + j;
        const bool inside = y >= 0 && y < images.height && x >= 0 && x < images.width;
        at[i][j] = inside ? from + place.image + (y * images.width + x) * images.channels : nullptr;
      }
    }
  }
  HWY_INLINE V Load(int i, int j, int64_t channel, int64_t n) const {
    return at[i][j] == nullptr ? hn::Zero(D()) : LoadPart(at[i][j] + channel, n);
  }
};

void TransformInput(const float* from, const TileImages& images, const TilePlace* places,
                    int64_t count, float* to, int64_t padded_channels, int64_t frequency_stride) {
  const int64_t lanes = LaneCount();
  for (int64_t tile = 0; tile < count; ++tile) {
    const Positions<kTile> positions(from, images, places[tile]);
    float* out = to + tile * padded_channels;
    for (int64_t c = 0; c < padded_channels; c += lanes) {
      const int64_t n = images.channels - c;
      V half[kTile][kTile];
      for (int j = 0; j < kTile; ++j) {
        V column[kTile], result[kTile];
        for (int i = 0; i < kTile; ++i)
          column[i] = positions.Load(i, j, c, std::max<int64_t>(n, 0));
        InputColumn(column, result);
        for (int i = 0; i < kTile; ++i) half[i][j] = result[i];
      }
      for (int i = 0; i < kTile; ++i) {
        V result[kTile];
        InputColumn(half[i], result);
        for (int j = 0; j < kTile; ++j) {
          hn::StoreU(result[j], D(), out + (i * kTile + j) * frequency_stride + c);
        }
      }
    }
  }
}

template <int size>
HWY_INLINE void FilterColumn(const V (&g)[size], V (&x)[kTile]) {
  for (int p = 0; p < kTile - 1; ++p) {
    V sum = g[size - 1];
    for (int i = size - 2; i >= 0; --i) sum = AddScaled(g[i], kPoints[p], sum);
    x[p] = Scaled(kScales[p], sum);
  }
  x[kTile - 1] = g[size - 1];
}

// A vector of outputs from k on of in channel c.
template <int size>
HWY_INLINE void TransformTaps(const float* from, int64_t inputs, int64_t outputs, bool rotated,
                              int64_t c, int64_t k, float* out, int64_t frequency_stride) {
  const int64_t n = std::clamp<int64_t>(outputs - k, 0, LaneCount());
  V half[kTile][size];
  for (int j = 0; j < size; ++j) {
    V column[size], result[kTile];
    for (int i = 0; i < size; ++i) {
      const int64_t tap = rotated ? (size - 1 - i) * size + (size - 1 - j) : i * size + j;
      if (!rotated) {
        column[i] = LoadPart(from + (tap * inputs + c) * outputs + k, n);
      } else {
        HWY_ALIGN float taps[hn::MaxLanes(D())] = {};
        for (int64_t l = 0; l < n; ++l) taps[l] = from[(tap * outputs + k + l) * inputs + c];
        column[i] = hn::Load(D(), taps);
      }
    }
    FilterColumn<size>(column, result);
    for (int i = 0; i < kTile; ++i) half[i][j] = result[i];
  }
  for (int i = 0; i < kTile; ++i) {
    V result[kTile];
    FilterColumn<size>(half[i], result);
    for (int j = 0; j < kTile; ++j) {
      hn::StoreU(result[j], D(), out + (i * kTile + j) * frequency_stride);
    }
  }
}

template <int size>
void TransformFilterOf(const float* from, int64_t inputs, int64_t outputs, bool rotated,
                       int64_t begin, int64_t end, float* to, int64_t frequency_stride) {
  const int64_t lanes = LaneCount();
  const int64_t panel = kVectors * lanes;
  const int64_t padded = (outputs + panel - 1) / panel * panel;
  // Neighbours among the inputs share lines of the cache, of a rotated filter too.
  constexpr int64_t kNeighbours = 16;
  for (int64_t first = begin; first < end; first += kNeighbours) {
    const int64_t last = std::min(end, first + kNeighbours);
    for (int64_t k = 0; k < padded; k += lanes) {
      for (int64_t c = first; c < last; ++c) {
        TransformTaps<size>(from, inputs, outputs, rotated, c, k,
                            to + (k / panel * inputs + c) * panel + k % panel, frequency_stride);
      }
    }
  }
}
void TransformFilter(int64_t filter_size, const float* from, int64_t inputs, int64_t outputs,
                     bool rotated, int64_t begin, int64_t end, float* to,
                     int64_t frequency_stride) {
  const auto run = filter_size == 3 ? TransformFilterOf<3> : TransformFilterOf<5>;
  run(from, inputs, outputs, rotated, begin, end, to, frequency_stride);
}

template <int rows>
HWY_INLINE void ProductBlock(const PanelProduct& p, const float* a, const float* b, float* c) {
  const D d;
  const auto lanes = LaneCount();
  V sums[rows][kVectors];
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = p.add ? hn::LoadU(d, c + r * p.c_stride + v * lanes) : hn::Zero(d);
    }
  }
  for (int64_t i = 0; i < p.k; ++i, a += p.a_depth, b += kVectors * lanes) {
    V columns[kVectors];
    for (int v = 0; v < kVectors; ++v) columns[v] = hn::LoadU(d, b + v * lanes);
    for (int r = 0; r < rows; ++r) {
      const V factor = hn::Set(d, a[r * p.a_row]);
      for (int v = 0; v < kVectors; ++v) {
        sums[r][v] = hn::MulAdd(factor, columns[v], sums[r][v]);
      }
    }
  }
  for (int r = 0; r < rows; ++r) {
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, c + r * p.c_stride + v * lanes);
  }
}

void MultiplyPanels(const PanelProduct& p) {
  const int64_t panel = kVectors * LaneCount();
  for (int64_t column = 0; column < p.panels; ++column) {
    const float* b = p.b + column * p.k * panel;
    int64_t row = 0;
    for (; row + kRows <= p.m; row += kRows) {
      ProductBlock<kRows>(p, p.a + row * p.a_row, b, p.c + row * p.c_stride + column * panel);
    }
    const float* a = p.a + row * p.a_row;
    float* c = p.c + row * p.c_stride + column * panel;
    switch (p.m - row) {
      case 1:
        ProductBlock<1>(p, a, b, c);
        break;
      case 2:
        ProductBlock<2>(p, a, b, c);
        break;
      case 3:
        ProductBlock<3>(p, a, b, c);
        break;
      case 4:
        ProductBlock<4>(p, a, b, c);
        break;
      case 5:
        ProductBlock<5>(p, a, b, c);
        break;
      default:
        break;
    }
  }
}

template <int outputs>
void TransformOutputOf(const float* from, int64_t padded_channels, int64_t frequency_stride,
                       const TileImages& images, const TilePlace* places, int64_t count,
                       float* to) {
  const int64_t lanes = LaneCount();
  for (int64_t tile = 0; tile < count; ++tile) {
    const TilePlace& place = places[tile];
    const int64_t rows = std::min<int64_t>(outputs, images.height - place.top);
    const int64_t columns = std::min<int64_t>(outputs, images.width - place.left);
    const float* in = from + tile * padded_channels;
    float* corner = to + place.image + (place.top * images.width + place.left) * images.channels;
    for (int64_t c = 0; c < images.channels; c += lanes) {
      const int64_t n = images.channels - c;
      V half[outputs][kTile];
      for (int j = 0; j < kTile; ++j) {
        V column[kTile], result[outputs];
        for (int i = 0; i < kTile; ++i) {
          column[i] = hn::LoadU(D(), in + (i * kTile + j) * frequency_stride + c);
        }
        OutputColumn<outputs>(column, result);
        for (int i = 0; i < outputs; ++i) half[i][j] = result[i];
      }
      for (int i = 0; i < rows; ++i) {
        V result[outputs];
        OutputColumn<outputs>(half[i], result);
        for (int j = 0; j < columns; ++j) {
          StorePart(result[j], n, corner + (i * images.width + j) * images.channels + c);
        }
      }
    }
  }
}
void TransformOutput(int64_t filter_size, const float* from, int64_t padded_channels,
                     int64_t frequency_stride, const TileImages& images, const TilePlace* places,
                     int64_t count, float* to) {
  const auto run = filter_size == 3 ? TransformOutputOf<4> : TransformOutputOf<2>;
  run(from, padded_channels, frequency_stride, images, places, count, to);
}

template <int outputs>
void TransformGradientOf(const float* from, const TileImages& images, const TilePlace* places,
                         int64_t begin, int64_t end, int64_t count, float* to,
                         int64_t frequency_stride) {
  const int64_t lanes = LaneCount();
  const int64_t panel = kVectors * lanes;
  const int64_t padded = (images.channels + panel - 1) / panel * panel;
  for (int64_t tile = begin; tile < end; ++tile) {
    const Positions<outputs> positions(from, images, places[tile]);
    for (int64_t c = 0; c < padded; c += lanes) {
      const int64_t n = std::max<int64_t>(images.channels - c, 0);
      V half[kTile][outputs];
      for (int j = 0; j < outputs; ++j) {
        V column[outputs], result[kTile];
        for (int i = 0; i < outputs; ++i) column[i] = positions.Load(i, j, c, n);
        GradientColumn<outputs>(column, result);
        for (int i = 0; i < kTile; ++i) half[i][j] = result[i];
      }
      float* out = to + (c / panel * count + tile) * panel + c % panel;
      for (int i = 0; i < kTile; ++i) {
        V result[kTile];
        GradientColumn<outputs>(half[i], result);
        for (int j = 0; j < kTile; ++j) {
          hn::StoreU(result[j], D(), out + (i * kTile + j) * frequency_stride);
        }
      }
    }
  }
}
void TransformGradient(int64_t filter_size, const float* from, const TileImages& images,
                       const TilePlace* places, int64_t begin, int64_t end, int64_t count,
                       float* to, int64_t frequency_stride) {
  const auto run = filter_size == 3 ? TransformGradientOf<4> : TransformGradientOf<2>;
  run(from, images, places, begin, end, count, to, frequency_stride);
}

// One column of G^T x.
template <int size>
HWY_INLINE void FilterGradientColumn(const V (&x)[kTile], V (&g)[size]) {
  float factors[kTile - 1];
  for (int p = 0; p < kTile - 1; ++p) factors[p] = kScales[p];
  for (int i = 0; i < size; ++i) {
    V sum = hn::Zero(D());
    for (int p = 0; p < kTile - 1; ++p) {
      sum = AddScaled(sum, factors[p], x[p]);
      factors[p] *= kPoints[p];
    }
    g[i] = i == size - 1 ? hn::Add(sum, x[kTile - 1]) : sum;
  }
}

template <int size>
void FinishFilterOf(const float* from, int64_t padded_outputs, int64_t frequency_stride,
                    int64_t inputs, int64_t outputs, int64_t begin, int64_t end, float* to) {
  const int64_t lanes = LaneCount();
  for (int64_t c = begin; c < end; ++c) {
    for (int64_t k = 0; k < outputs; k += lanes) {
      const float* in = from + c * padded_outputs + k;
      V half[size][kTile];
      for (int j = 0; j < kTile; ++j) {
        V column[kTile], result[size];
        for (int i = 0; i < kTile; ++i) {
          column[i] = hn::LoadU(D(), in + (i * kTile + j) * frequency_stride);
        }
        FilterGradientColumn<size>(column, result);
        for (int i = 0; i < size; ++i) half[i][j] = result[i];
      }
      for (int i = 0; i < size; ++i) {
        V result[size];
        FilterGradientColumn<size>(half[i], result);
        for (int j = 0; j < size; ++j) {
          StorePart(result[j], outputs - k, to + ((i * size + j) * inputs + c) * outputs + k);
        }
      }
    }
  }
}
void FinishFilter(int64_t filter_size, const float* from, int64_t padded_outputs,
                  int64_t frequency_stride, int64_t inputs, int64_t outputs, int64_t begin,
                  int64_t end, float* to) {
  const auto run = filter_size == 3 ? FinishFilterOf<3> : FinishFilterOf<5>;
  run(from, padded_outputs, frequency_stride, inputs, outputs, begin, end, to);
}

const WinogradFunctions* Functions() {
  static const WinogradFunctions functions = {
      kVectors * LaneCount(), TransformInput,    TransformFilter, MultiplyPanels,
      TransformOutput,        TransformGradient, FinishFilter};
  return &functions;
}

}  // namespace
}  // namespace weft::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft {
HWY_EXPORT(Functions);
const WinogradFunctions& GetWinogradFunctions() {
  static const WinogradFunctions* const functions = HWY_DYNAMIC_DISPATCH(Functions)();
  return *functions;
}
}  // namespace weft
#endif
