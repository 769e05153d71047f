// SPDX-License-Identifier: Apache-2.0
// A function while it is traced: the graph that its calls become.
#pragma once

#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"

#include "base/status.h"
#include "weft/graph/builder.h"
#include "weft/imperative/array.h"
#include "weft/imperative/graph_call.h"
#include "weft/imperative/op_kind.h"

namespace weft::imperative {

class Runtime;

// From its making on what the runtime is asked to run becomes nodes, until it is destroyed. May not
// be nested: a function that is called by another becomes a part of it.
class Tracing {
 public:
  explicit Tracing(Runtime& runtime);
  ~Tracing();
  Tracing(const Tracing&) = delete;
  Tracing& operator=(const Tracing&) = delete;

  Array AddInput(DType dtype, const PartialShape& shape);
  StatusOr<std::vector<Array>> Add(const OpKind& kind, absl::Span<const Array> inputs);
  // The graph with these outputs. What was used of outside (`captured`) are further inputs.
  StatusOr<TracedGraph> End(const std::vector<Array>& outputs, std::vector<Array>* captured);

 private:
  StatusOr<Endpoint> Inside(const Array& array);

  Runtime& runtime_;
  TracedGraph made_;
  GraphBuilder builder_;
  std::vector<Array> captured_;
  std::vector<Endpoint> captured_inputs_;
  absl::flat_hash_map<int64_t, Endpoint> inside_;  // of what is captured, by id
};

}  // namespace weft::imperative
