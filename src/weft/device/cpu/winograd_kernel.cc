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

// One column of G g. Points of opposite signs share the sums of even and of odd taps.
template <int size>
HWY_INLINE void FilterColumn(const V (&g)[size], V (&x)[kTile]) {
  V even = hn::Add(g[0], g[2]), odd = g[1];
  V even2 = AddScaled(g[0], 4, g[2]), odd2 = Scaled(2, g[1]);
  if constexpr (size == 5) {
    even = hn::Add(even, g[4]);
    odd = hn::Add(odd, g[3]);
    even2 = AddScaled(even2, 16, g[4]);
    odd2 = AddScaled(odd2, 8, g[3]);
  }
  x[0] = Scaled(0.25f, g[0]);
  x[1] = Scaled(-1.0f / 6, hn::Add(even, odd));
  x[2] = Scaled(-1.0f / 6, hn::Sub(even, odd));
  x[3] = Scaled(1.0f / 24, hn::Add(even2, odd2));
  x[4] = Scaled(1.0f / 24, hn::Sub(even2, odd2));
  x[5] = g[size - 1];
}

// One vector of outputs of an in channel.
template <int size>
HWY_INLINE void TransformTaps(const V (&taps)[size][size], float* out, int64_t frequency_stride) {
  V half[kTile][size];
  for (int j = 0; j < size; ++j) {
    V column[size], result[kTile];
    for (int i = 0; i < size; ++i) column[i] = taps[i][j];
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

// Neighbours among the inputs of a rotated filter, which lie beside each other in memory.
constexpr int64_t kNeighbours = 16;

// Outputs from k on of in channels [first, last), at most kNeighbours. The filter is read in its
// memory's order and turned in the nearest cache.
template <int size>
HWY_INLINE void TransformRotated(const FilterPart& p, int64_t k, int64_t first, int64_t last,
                                 float* out, int64_t step) {
  const int64_t lanes = LaneCount();
  const int64_t n = std::clamp<int64_t>(p.outputs - k, 0, lanes);
  HWY_ALIGN float seen[size * size][hn::MaxLanes(D()) * kNeighbours];
  for (int64_t tap = 0; tap < size * size; ++tap) {
    const float* const from = p.from + (size * size - 1 - tap) * p.outputs * p.inputs;
    for (int64_t l = 0; l < n; ++l) {
      const float* const row = from + (k + l) * p.inputs;
      for (int64_t c = first; c < last; ++c) seen[tap][(c - first) * lanes + l] = row[c];
    }
  }
  for (int64_t c = 0; c < last - first; ++c) {
    V taps[size][size];
    for (int i = 0; i < size; ++i) {
      for (int j = 0; j < size; ++j) taps[i][j] = LoadPart(seen[i * size + j] + c * lanes, n);
    }
    TransformTaps<size>(taps, out + c * step, p.frequency_stride);
  }
}

template <int size>
void TransformFilterOf(const FilterPart& p) {
  const int64_t lanes = LaneCount();
  const int64_t panel = kVectors * lanes;
  for (int64_t first = p.first_input; first < p.last_input; first += kNeighbours) {
    const int64_t last = std::min(p.last_input, first + kNeighbours);
    for (int64_t k = p.first_panel * panel; k < p.last_panel * panel; k += lanes) {
      float* const out = p.to + (k / panel - p.first_panel) * p.panel_stride +
                         (first - p.first_input) * panel + k % panel;
      if (p.rotated) {
        TransformRotated<size>(p, k, first, last, out, panel);
        continue;
      }
      const int64_t n = std::clamp<int64_t>(p.outputs - k, 0, lanes);
      for (int64_t c = first; c < last; ++c) {
        V taps[size][size];
        for (int i = 0; i < size; ++i) {
          for (int j = 0; j < size; ++j) {
            taps[i][j] = LoadPart(p.from + ((i * size + j) * p.inputs + c) * p.outputs + k, n);
          }
        }
        TransformTaps<size>(taps, out + (c - first) * panel, p.frequency_stride);
      }
    }
  }
}
void TransformFilter(int64_t filter_size, const FilterPart& part) {
  return filter_size == 3 ? TransformFilterOf<3>(part) : TransformFilterOf<5>(part);
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
                       int64_t channels, float* to) {
  const int64_t lanes = LaneCount();
  for (int64_t tile = 0; tile < count; ++tile) {
    const TilePlace& place = places[tile];
    const int64_t rows = std::min<int64_t>(outputs, images.height - place.top);
    const int64_t columns = std::min<int64_t>(outputs, images.width - place.left);
    const float* in = from + tile * padded_channels;
    float* corner = to + place.image + (place.top * images.width + place.left) * images.channels;
    for (int64_t c = 0; c < channels; c += lanes) {
      const int64_t n = channels - c;
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
                     int64_t count, int64_t channels, float* to) {
  const auto run = filter_size == 3 ? TransformOutputOf<4> : TransformOutputOf<2>;
  run(from, padded_channels, frequency_stride, images, places, count, channels, to);
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

// One column of G^T x, the transpose of FilterColumn.
template <int size>
HWY_INLINE void FilterGradientColumn(const V (&x)[kTile], V (&g)[size]) {
  const V even = Scaled(-1.0f / 6, hn::Add(x[1], x[2]));
  const V odd = Scaled(-1.0f / 6, hn::Sub(x[1], x[2]));
  const V even2 = hn::Add(x[3], x[4]), odd2 = hn::Sub(x[3], x[4]);
  g[0] = AddScaled(AddScaled(even, 1.0f / 24, even2), 0.25f, x[0]);
  g[1] = AddScaled(odd, 1.0f / 12, odd2);
  g[2] = AddScaled(even, 1.0f / 6, even2);
  if constexpr (size == 5) {
    g[3] = AddScaled(odd, 1.0f / 3, odd2);
    g[4] = AddScaled(even, 2.0f / 3, even2);
  }
  g[size - 1] = hn::Add(g[size - 1], x[5]);
}

template <int size>
void FinishFilterOf(const float* from, int64_t row_stride, int64_t frequency_stride, int64_t rows,
                    int64_t columns, int64_t inputs, int64_t outputs, float* to) {
  const int64_t lanes = LaneCount();
  for (int64_t c = 0; c < rows; ++c) {
    for (int64_t k = 0; k < columns; k += lanes) {
      const float* in = from + c * row_stride + k;
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
          StorePart(result[j], columns - k, to + ((i * size + j) * inputs + c) * outputs + k);
        }
      }
    }
  }
}
void FinishFilter(int64_t filter_size, const float* from, int64_t row_stride,
                  int64_t frequency_stride, int64_t rows, int64_t columns, int64_t inputs,
                  int64_t outputs, float* to) {
  const auto run = filter_size == 3 ? FinishFilterOf<3> : FinishFilterOf<5>;
  run(from, row_stride, frequency_stride, rows, columns, inputs, outputs, to);
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
