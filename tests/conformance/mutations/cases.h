// SPDX-License-Identifier: Apache-2.0
// The cases that dump_cases.py wrote.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "proto/tensorflow/graph.pb.h"
#include "proto/tensorflow/master.pb.h"

namespace weft::mutations {

// A graph and steps of it.
struct Case {
  std::string op;
  tensorflow::GraphDef graph;
  std::vector<tensorflow::RunStepRequest> steps;
};

// By op, so that an op with many cases does not push the others aside.
using Cases = std::vector<std::vector<Case>>;

StatusOr<Cases> ReadCases(const std::string& path);

}  // namespace weft::mutations
