// SPDX-License-Identifier: Apache-2.0
// The tables in which loops of one instruction set are found by functor and dtype.
#pragma once

#include <cstddef>

#include "weft/kernel/tile.h"

namespace weft::ops {

struct SimdTile {
  const char* functor;
  DType dtype;
  decltype(TileBody::run) run;
};
struct SimdTable {
  const SimdTile* tiles;
  size_t size;
};

// exp, log, tanh and their kin for float and double.
SimdTable SimdMathTiles();

}  // namespace weft::ops
