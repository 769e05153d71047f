// SPDX-License-Identifier: Apache-2.0
// The outputs of a node by argument, for generated constructors.
#pragma once

#include <vector>

#include "weft/graph/graph.h"

namespace weft {

// The ports of output argument `index`; none for a null node.
inline std::vector<Endpoint> OutputPorts(Node* node, size_t index) {
  std::vector<Endpoint> ports;
  if (node == nullptr) return ports;
  int first = 0;
  for (size_t i = 0; i <= index; ++i) {
    const StatusOr<std::vector<ArgType>> types =
        ResolveArgs({node->schema().outputs[i]}, node->attrs());
    const int count = types.ok() ? static_cast<int>(types->size()) : 0;
    for (int p = 0; i == index && p < count; ++p) ports.push_back({node, first + p});
    first += count;
  }
  return ports;
}

// The only one.
inline Endpoint OutputPort(Node* node, size_t index) {
  if (node == nullptr || index == 0) return {node, 0};
  const std::vector<Endpoint> ports = OutputPorts(node, index);
  return ports.empty() ? Endpoint() : ports[0];
}

}  // namespace weft
