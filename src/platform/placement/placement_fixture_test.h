// SPDX-License-Identifier: Apache-2.0
// Small steps and clusters for tests.
#pragma once

#include <string>
#include <vector>

#include "platform/placement/cluster.h"
#include "platform/placement/step_graph.h"

namespace weft::platform {

// So many nodes with 16 processors each.
inline Cluster UniformCluster(int nodes, double gigabits) {
  return *MakeCluster(
      std::vector<NodeShape>(nodes, {"cpu", 16, 64 * kGibibyte, 0, "", gigabits, 1.0}));
}

// An op that takes `seconds` on 16 processors, where the test's cost model was measured.
inline int AddTimedOp(const std::string& name, double seconds, const std::vector<int>& inputs,
                      double output_bytes, StepGraph* graph) {
  const int op = AddOp({.name = name, .op = "MatMul", .seconds = seconds}, inputs, graph);
  return AddTensor(op, output_bytes, graph);
}

}  // namespace weft::platform
