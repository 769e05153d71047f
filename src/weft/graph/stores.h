// SPDX-License-Identifier: Apache-2.0
// Stores of tensors that live as long as a step: stacks and arrays, which loops fill and read.
#pragma once

#include <cstdint>

#include "weft/graph/graph.h"

namespace weft {

// What a node does with the store that its first input, a handle, names.
enum class Stores : uint8_t {
  kNothing,
  kMakes,       // its first output names it
  kPushes,      // input 1, which is the first output too
  kPops,        // gives what was pushed last
  kWrites,      // input 2 as an element
  kWritesRows,  // the rows of input 2 as elements
  kReads,       // gives an element
  kLeaves,      // changes no element
};

// Of the ops of graphs of version 1 whose handles are resources.
Stores StoresOf(const Node& node);

}  // namespace weft
