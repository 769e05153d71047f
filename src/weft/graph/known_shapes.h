// SPDX-License-Identifier: Apache-2.0
// The shapes of a graph's tensors as far as they are known before any step.
#pragma once

#include <vector>

#include "base/status.h"
#include "weft/graph/graph.h"
#include "weft/tensor/shape.h"

namespace weft {

// Each node is inferred once, from what it read then: what is connected later (back edges of loops)
// counts as unknown. Follows a graph that grows; nodes may be removed. Not thread-safe.
class KnownShapes {
 public:
  // A variable by reference has the shape it declares, unless assignments that check none
  // (validate_shape = false) are to be reckoned with.
  enum class References { kDeclared, kUnknown };
  explicit KnownShapes(References references = References::kDeclared) : references_(references) {}

  // Infers the node's outputs, and before them whatever it reads. InvalidArgument, naming the node
  // and the shapes it got, if they contradict what the op takes; the outputs are unknown then.
  Status Infer(const Node& node);
  // Infers what is missing.
  PartialShape Of(const Endpoint& tensor);
  // For a tensor whose shape is known from elsewhere.
  void Set(const Node& node, std::vector<PartialShape> outputs);

 private:
  enum class State : uint8_t { kNew, kStarted, kDone };
  struct Entry {
    State state = State::kNew;
    std::vector<PartialShape> outputs;
    PartialShape variable;  // what a handle leads to
  };
  Entry& At(const Node& node);
  void InferSources(const Node& node);
  Status InferOne(const Node& node);

  const References references_;
  std::vector<Entry> entries_;  // by node id
};

}  // namespace weft
