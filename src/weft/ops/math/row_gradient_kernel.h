// SPDX-License-Identifier: Apache-2.0
// What the gradients of ops that pick elements of rows share.
#pragma once

#include <vector>

#include "weft/graph/gradient.h"

namespace weft::ops::math {

// Zeros of `shape` with `values` added in, each in its row (last dimension) at the column that
// `columns`, of the values' shape, says.
inline Endpoint ScatterInRows(GradientContext& c, Endpoint values, Endpoint columns,
                              Endpoint shape) {
  const auto scalar = [&](int32_t value) { return c.builder().Scalar<int32_t>(value); };
  const auto vector = [&](int32_t value) {
    return c.builder().Constant(Tensor::Vector<int32_t>({value}));
  };
  const Endpoint last = c.Op("Sub", {c.Op("Size", {shape}), scalar(1)});
  const Endpoint width = c.Op("GatherV2", {shape, last, scalar(0)});
  const Endpoint k = c.Op("GatherV2", {c.Op("Shape", {columns}), last, scalar(0)});
  const Endpoint size = c.Op("Prod", {shape, vector(0)});
  // The place of row r, column i is r * width + i.
  const Endpoint starts = c.Op("Range", {scalar(0), size, width});
  const Endpoint rows =
      c.Op("Reshape", {columns, c.Op("Pack", {std::vector<Endpoint>{scalar(-1), k}})});
  const Endpoint indices = c.Op("Cast", {rows}, {{"DstT", DType::kInt32}});
  const Endpoint places = c.Op("AddV2", {indices, c.Op("ExpandDims", {starts, scalar(-1)})});
  const Endpoint flat = c.Op("UnsortedSegmentSum", {c.Op("Reshape", {values, vector(-1)}),
                                                    c.Op("Reshape", {places, vector(-1)}), size});
  return c.Op("Reshape", {flat, shape});
}

}  // namespace weft::ops::math
