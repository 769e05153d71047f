// SPDX-License-Identifier: Apache-2.0
// What nodes give that can be told before any step.
#pragma once

#include <optional>
#include <vector>

#include "absl/types/span.h"

#include "weft/compile/plan.h"
#include "weft/tensor/shape.h"
#include "weft/tensor/tensor.h"

namespace weft::compile {

// The outputs of an op that tells of shapes (OpTraits::tells), if these are known; else nothing.
std::optional<std::vector<Tensor>> ValuesTold(const Node& node,
                                              absl::Span<const PartialShape> inputs);

// The outputs that the node's kernel computes of these inputs, none of which is null; nothing if it
// fails, waits for others or gives no tensor.
std::optional<std::vector<Tensor>> ValuesComputed(const PlanOptions& options, const Node& node,
                                                  absl::Span<const Tensor* const> inputs);

}  // namespace weft::compile
