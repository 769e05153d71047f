// SPDX-License-Identifier: Apache-2.0
// Cuts the graph of one step out of a session's graph.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "weft/graph/graph.h"
#include "weft/tensor/shape.h"

namespace weft::compile {

// What a client asks of a step: tensors it gives, tensors it wants ("x:0"), nodes it runs
// ("train").
struct Signature {
  std::vector<std::string> feeds;
  std::vector<std::string> fetches;
  std::vector<std::string> targets;
  // Of the feeds, where the step is for these alone; empty is for any.
  std::vector<PartialShape> shapes;

  // Equal for signatures that differ in order only.
  std::string SortedKey() const;
};

// The nodes that fetches and targets need, stopping at feeds. Fed tensors come out of `_Arg` nodes
// (attr index = position in `feeds`), fetches go into `_Retval` nodes (index = position in
// `fetches`). InvalidArgument or NotFound names the tensor or node that does not exist or is fed or
// fetched wrongly. `graph` is left alone; the result shares its function library.
StatusOr<Graph> CutStepGraph(const Graph& graph, const Signature& signature);

}  // namespace weft::compile
