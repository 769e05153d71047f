// SPDX-License-Identifier: Apache-2.0
// GraphDef -> Graph with every check a graph from outside needs, and back.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_def.h"

namespace weft {

struct ImportOptions {
  // Nodes whose op or name starts with '_': what the system itself adds (partitions of a graph).
  bool allow_internal = false;
  int64_t max_nodes = 10'000'000;
  int max_name_length = 64 << 10;
};

// Adds the nodes and functions of `def` to `graph`, whose nodes it may read; all or nothing.
// Refused, naming the node: bad, repeated or taken names, unknown ops (NotFound with the nearest
// name), ops removed before the producer's version (Unimplemented), inputs that do not exist, wrong
// arity or dtypes, cycles (a Merge may read a NextIteration that comes later), malformed devices,
// functions that call themselves, versions that do not go together. Everything else is
// InvalidArgument.
Status ImportGraph(GraphDef def, const ImportOptions& options, Graph* graph);

struct ExportOptions {
  // Nodes say where they were placed rather than what was asked for.
  bool assigned_devices = false;
  // Leaves out attributes that equal their op's default.
  bool strip_defaults = false;
};

// Nodes in order of creation, inputs in the form "node", "node:1", "^node".
GraphDef ExportGraph(const Graph& graph, const ExportOptions& options = {});
NodeDef ExportNode(const Node& node, const ExportOptions& options = {});

// True for names a client may use: letters, digits and "-./_" not starting with one of "-/_", in
// parts joined by '>'.
bool IsValidNodeName(absl::string_view name, bool allow_internal = false);
// InvalidArgument says what is allowed.
Status CheckNodeName(absl::string_view name, bool allow_internal = false);

}  // namespace weft
