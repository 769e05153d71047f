// SPDX-License-Identifier: Apache-2.0
// Datasets that lie in an HDF5 file in chunks, perhaps compressed.
#pragma once

#include <vector>

#include "weft/storage/hdf5_cursor.h"
#include "weft/tensor/tensor.h"

namespace weft::storage::hdf5 {

// What a chunk went through when it was written.
enum class Filter { kDeflate, kShuffle };

// The message about filters. Unimplemented for others.
StatusOr<std::vector<Filter>> ReadFilters(Cursor& c);

// The dataset whose layout message goes on at `c` behind its class.
StatusOr<Tensor> ReadChunks(absl::string_view file, Cursor& c, DType dtype, const Shape& shape,
                            const std::vector<Filter>& filters);

}  // namespace weft::storage::hdf5
