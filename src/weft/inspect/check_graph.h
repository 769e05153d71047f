// SPDX-License-Identifier: Apache-2.0
// What of a graph would not run here, and why, without running it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "proto/tensorflow/graph.pb.h"
#include "weft/kernel/op_spec.h"

namespace weft::inspect {

// One reason, with the nodes that it holds for.
struct Problem {
  enum class Kind { kUnknownOp, kNoKernel, kAttribute, kMalformed };
  Kind kind = Kind::kMalformed;
  std::string what;                // the op, or a sentence
  std::string nearest;             // of an unknown op: the op that may have been meant, or empty
  std::vector<std::string> nodes;  // "node", or "node in function f"
};

struct CheckReport {
  int64_t num_nodes = 0;  // those of functions too
  int64_t num_functions = 0;
  int64_t num_ops = 0;  // different ones
  std::vector<Problem> problems;
  std::vector<std::string> notes;  // would run, but differently

  bool ok() const { return problems.empty(); }
  // Some lines for people, indented by two.
  std::string Text() const;
  Json AsJson() const;
};

// Looks for ops and functions that are not there, types without a kernel on `device`, attributes
// that a kernel refuses, and for what any graph must fulfil: names, inputs, types, no cycles.
// Thread-safe.
CheckReport CheckGraph(const tensorflow::GraphDef& graph, const Catalogue& catalogue,
                       Device* device);

}  // namespace weft::inspect
