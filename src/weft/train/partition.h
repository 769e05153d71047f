// SPDX-License-Identifier: Apache-2.0
// How large variables are split into parts, by TensorFlow's rules.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "weft/tensor/dtype.h"
#include "weft/tensor/shape.h"

namespace weft::train {

// `parts` pieces along `axis`, as even as can be, longer ones first.
struct Partition {
  int axis = 0;
  int64_t parts = 1;
};

// Chooses the partition of a variable. InvalidArgument if it has no such axis.
using Partitioner = std::function<StatusOr<Partition>(DType, const Shape&)>;

// What a string is taken to hold where a partitioner counts bytes.
inline constexpr int64_t kBytesPerString = 16;

// `parts`, or the axis' size if that is less.
Partitioner FixedSizePartitioner(int64_t parts, int axis = 0);
// Parts of at most `max_part_bytes` each, but never less than one slice of the axis; at most
// `max_parts` of them, if that is not 0.
Partitioner VariableAxisSizePartitioner(int64_t max_part_bytes, int axis = 0,
                                        int64_t bytes_per_string = kBytesPerString,
                                        int64_t max_parts = 0);
// As many parts as hold `min_part_bytes` each, at most `max_parts`.
Partitioner MinMaxPartitioner(int64_t max_parts, int axis = 0, int64_t min_part_bytes = 256 << 10,
                              int64_t bytes_per_string = kBytesPerString);

// Sizes of the parts along the axis. InvalidArgument unless 1 <= parts <= the axis' size (or 1 for
// none).
StatusOr<std::vector<int64_t>> PartSizes(const Partition& partition, const Shape& shape);

}  // namespace weft::train
