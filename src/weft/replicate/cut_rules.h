// SPDX-License-Identifier: Apache-2.0
// How ops go with a variable that is cut by rows into parts, each on a device of its own.
#pragma once

#include "weft/graph/graph.h"

namespace weft::replicate {

enum class CutUse : uint8_t {
  kNone,           // knows nothing of parts: it may read the value, put together
  kRead,           // gives the value behind a handle
  kGather,         // gives the rows that its indices name, of a value or behind a handle
  kUpdate,         // changes variables, all rows of them or those that its indices name
  kIsInitialized,  // tells whether the variable has a value
  kShape,          // tells the variable's shape
  kByElement,      // computes each element of its own
  kSumOfSquares,   // gives a scalar that is the sum of what it gives of the parts
};
CutUse CutUseOf(const OpSchema& op);

// What an input of an update or of a gather is.
enum class CutInput : uint8_t {
  kVariable,
  kRows,     // a value for each row of the variables, or for each index
  kIndices,  // of rows
  kOther,    // the same for all parts
};
CutInput CutInputOf(const ArgSchema& input);

// Whether a gather is along the first dimension.
bool GathersRows(const Node& node);
// Whether all elements of its output are the scalar of input 1.
bool IsFill(const Node& node);

}  // namespace weft::replicate
