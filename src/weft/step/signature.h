// SPDX-License-Identifier: Apache-2.0
// What a client asks of one step, and what it hears of it besides the results.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "weft/compile/prune.h"
#include "weft/executor/step_trace.h"
#include "weft/graph/node_def.h"
#include "weft/tensor/tensor.h"

namespace weft::step {

using Feed = std::pair<std::string, Tensor>;  // "x:0", value

struct RunMetadata {
  std::vector<executor::NodeTrace> trace;
  std::vector<GraphDef> partition_graphs;
};

// Names a call by its feeds, fetches and targets, in the order in which they came: sorting them
// each time would cost more than compiling another order once.
std::string SignatureKey(const std::vector<Feed>& feeds, const std::vector<std::string>& fetches,
                         const std::vector<std::string>& targets);
// A step that is first called with some feeds is made for their shapes (kThese): what it computes
// of shapes is computed once. Where others come, it is made once more, for any (kAny).
enum class FeedShapes : uint8_t { kAny, kThese };
compile::Signature SignatureOf(const std::vector<Feed>& feeds,
                               const std::vector<std::string>& fetches,
                               const std::vector<std::string>& targets, FeedShapes shapes);
// Whether a step made for `shapes` takes the feeds. One made for any has none.
bool TakesShapes(absl::Span<const PartialShape> shapes, const std::vector<Feed>& feeds);
// The key of the step for any shapes beside `key`, that of the first one made.
std::string AnyShapesKey(absl::string_view key);

}  // namespace weft::step
