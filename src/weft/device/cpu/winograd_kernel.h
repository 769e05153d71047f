// SPDX-License-Identifier: Apache-2.0
// The vector code of Winograd's minimal filtering (winograd.cc): transforms of tiles of 6 x 6 and
// the products between them. Lavin and Gray, "Fast algorithms for convolutional neural networks",
// 2015, with the points 0, 1, -1, 2, -2 and infinity.
#pragma once

#include <cstdint>

namespace weft {

// A tile has six rows and columns: kFrequencies products for each pair of channels.
inline constexpr int64_t kWinogradTile = 6;
inline constexpr int64_t kFrequencies = kWinogradTile * kWinogradTile;

// Where a tile of images [.., height, width, channels] lies. Positions outside count as zeros.
struct TilePlace {
  int64_t image = 0;  // elements from the batch's begin to the tile's image
  int64_t top = 0;
  int64_t left = 0;
};

struct TileImages {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
};

// Which pairs of channels of a filter to transform: `rotated` reads a filter [size, size, outputs,
// inputs] from its last tap on. In channel i of panel p goes to frequency 0 of `to` + (p -
// first_panel) * panel_stride + (i - first_input) * panel; frequencies lie `frequency_stride`
// apart.
struct FilterPart {
  const float* from = nullptr;
  int64_t inputs = 0;
  int64_t outputs = 0;
  bool rotated = false;
  int64_t first_input = 0;
  int64_t last_input = 0;
  int64_t first_panel = 0;
  int64_t last_panel = 0;
  float* to = nullptr;
  int64_t panel_stride = 0;
  int64_t frequency_stride = 0;
};

// A product over one frequency: c = op(a) b, or c += op(a) b, where b lies in panels
// [n / panel][k][panel]; rows of c hold a whole number of panels.
struct PanelProduct {
  const float* a = nullptr;
  int64_t a_row = 0;    // elements from row to row of op(a)
  int64_t a_depth = 0;  // from column to column of op(a)
  const float* b = nullptr;
  int64_t m = 0;
  int64_t panels = 0;
  int64_t k = 0;
  float* c = nullptr;
  int64_t c_stride = 0;
  bool add = false;
};

// `filter_size` is 3 (tiles of 4 x 4 outputs) or 5 (tiles of 2 x 2).
struct WinogradFunctions {
  int64_t panel;  // columns of a panel; channels are filled up to a multiple of it

  // `count` input tiles, to [frequency][count][padded channels], frequencies `frequency_stride`
  // elements apart, with zeros in what is filled up.
  void (*input)(const float* from, const TileImages& images, const TilePlace* places, int64_t count,
                float* to, int64_t padded_channels, int64_t frequency_stride);
  void (*filter)(int64_t filter_size, const FilterPart& part);
  void (*product)(const PanelProduct& product);
  // Products [frequency][count][padded channels] to `channels` channels of outputs from `to` on.
  void (*output)(int64_t filter_size, const float* from, int64_t padded_channels,
                 int64_t frequency_stride, const TileImages& images, const TilePlace* places,
                 int64_t count, int64_t channels, float* to);
  // Tiles [begin, end) of `count` of an output's gradient, to panels [frequency][panel][tile].
  void (*gradient)(int64_t filter_size, const float* from, const TileImages& images,
                   const TilePlace* places, int64_t begin, int64_t end, int64_t count, float* to,
                   int64_t frequency_stride);
  // Sums [frequency][rows][row_stride] to `columns` out channels of `rows` in channels of a
  // filter's gradient [size, size, inputs, outputs], from `to` on.
  void (*filter_gradient)(int64_t filter_size, const float* from, int64_t row_stride,
                          int64_t frequency_stride, int64_t rows, int64_t columns, int64_t inputs,
                          int64_t outputs, float* to);
};

// For this machine's instruction set.
const WinogradFunctions& GetWinogradFunctions();

}  // namespace weft
