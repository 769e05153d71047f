// SPDX-License-Identifier: Apache-2.0
// Rows without an entry get one: what the sparse and the ragged form of it share.
#pragma once

#include <string>

#include "absl/functional/function_ref.h"

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"

namespace weft::ops {

// Where the entries of each row go once every row has one.
struct RowPlaces {
  Scratch<int64_t> next;  // by row, and the end of the last one behind
  const bool* is_empty;   // by row: it had none. Output 2 of the call.
};
// `row_of(i)` is the row of entry i; InvalidArgument for one out of range.
StatusOr<RowPlaces> PlacesOfRows(KernelContext& c, int64_t rows, int64_t entries,
                                 absl::FunctionRef<int64_t(int64_t)> row_of);

// The gradient as an op: of each entry, and, as one sum, of what filled the empty rows.
OpSpec FillRowsGradientOp(const std::string& name, const std::string& of);
// Gradient function of the op itself, by the op of that name.
GradientFunction FillRowsGradient(const std::string& name);

}  // namespace weft::ops
