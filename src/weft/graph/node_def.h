// SPDX-License-Identifier: Apache-2.0
// A graph as text: nodes that name their inputs. What is imported, exported and sent.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weft/graph/attr_value.h"
#include "weft/graph/op_schema.h"

namespace weft {

// node_def.proto in memory. Inputs are "node", "node:port" or "^node"; in function bodies also
// "node:output:index".
struct NodeDef {
  std::string name;
  std::string op;
  std::string device;
  std::vector<std::string> inputs;
  AttrMap attrs;
};

// A named, typed sub-graph. `returns` maps each output arg of the signature to "node:output:index".
struct FunctionDef {
  OpSchema signature;
  std::vector<NodeDef> nodes;
  std::map<std::string, std::string> returns;
  std::map<std::string, std::string> control_returns;
  AttrMap attrs;
};

struct Versions {
  int producer = 0;
  int min_consumer = 0;
  std::vector<int> bad_consumers;
};

// What we claim to understand, as TF_GRAPH_DEF_VERSION does.
inline constexpr int kGraphVersion = 2314;

struct GraphDef {
  std::vector<NodeDef> nodes;
  std::vector<FunctionDef> functions;
  std::map<std::string, std::string> gradient_functions;
  Versions versions;
};

// "name:3" -> (name, 3); "name" -> (name, 0); "^name" -> (name, kControlPort). InvalidArgument for
// an empty name, leading zeros or an absurd port.
inline constexpr int kControlPort = -1;
struct TensorName {
  std::string node;
  int port = 0;
};
StatusOr<TensorName> ParseTensorName(absl::string_view text);

}  // namespace weft
