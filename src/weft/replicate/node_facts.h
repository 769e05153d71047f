// SPDX-License-Identifier: Apache-2.0
// What the analysis asks of a node by itself.
#pragma once

#include <optional>
#include <string>

#include "weft/graph/graph.h"
#include "weft/replicate/share.h"

namespace weft::replicate {

// "'y' (MatMul)"
std::string Quoted(const Node& node);

// The integers of a small constant scalar or vector.
std::optional<Elements> ElementsOf(const Tensor& tensor);
bool IsZero(const Tensor& tensor);

// Changes a variable, or the reference of one.
bool IsUpdate(const Node& node);
// Input whose state is in one process.
bool IsStatefulSource(const Node& node);
// Only a place in the order of others.
bool IsMark(const Node& node);

// Whether what workers have of a tensor that `reader` takes can be made the whole: scaled parts are
// divided again, which integers cannot be.
bool CanBePutTogether(const Share& share, const Node& reader, int input);

}  // namespace weft::replicate
