// SPDX-License-Identifier: Apache-2.0
// A step as planning sees it: ops with what they cost, and the tensors between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "platform/placement/cost_file.h"

namespace weft::platform {

enum class OpRole : uint8_t {
  kCompute,
  kVariable,  // holds state from step to step
  kUpdate,    // changes it, where it is
  kLookup,    // reads a part of it, where it is
};

struct StepOp {
  std::string name;
  std::string op;
  OpRole role = OpRole::kCompute;
  double flops = 0;
  double bytes = 0;     // read and written
  double seconds = -1;  // as measured; negative: not
  // Bytes held for good, and bytes of outputs that something holds until they are read.
  double state_bytes = 0;
  double output_bytes = 0;
  int group = -1;            // ops of one group are on one device; -1: of its own
  std::vector<int> inputs;   // tensors
  std::vector<int> outputs;  // tensors
};

// Goes once to each device on which somebody reads it.
struct StepTensor {
  int producer = 0;
  double bytes = 0;
  std::vector<int> consumers;  // ops, each once
  double delay = 0;            // seconds that it is on its way beyond what the link takes
  bool follows_batch = false;  // has rows of the batch: of a share of it there are fewer
};

// Ops come after all that they read.
struct StepGraph {
  std::string name;
  std::string fingerprint;
  int64_t batch = 0;         // examples a step; 0: not known
  double step_seconds = -1;  // as measured; negative: not
  std::vector<StepOp> ops;
  std::vector<StepTensor> tensors;
  int num_groups = 0;

  int num_ops() const { return static_cast<int>(ops.size()); }
  double StateBytes() const;
};

// For those that build one: an op reads earlier ones' tensors. Returns its index.
int AddOp(StepOp op, const std::vector<int>& inputs, StepGraph* graph);
// A tensor that op `producer` makes. Returns its index.
int AddTensor(int producer, double bytes, StepGraph* graph);
// Lets an op read a tensor; a second time changes nothing.
void Connect(int tensor, int consumer, StepGraph* graph);

// Variables, their updates and what reads rows of them become groups. Edges that close a loop are
// left out. Times are means, or what was the least in any step: what an op takes undisturbed.
// InvalidArgument if two ops have one name.
enum class OpTime : uint8_t { kMean, kLeast };
StatusOr<StepGraph> MakeStepGraph(const CostFile& costs, const std::string& name,
                                  OpTime time = OpTime::kMean);

// The same step in at most about `most_ops` ops: each op goes together with the one that alone
// reads it, or that alone gives it its inputs, those with the largest tensors between them first.
// Never makes a cycle. With `keep_roles` only ops that compute go together. `part_of`, if not null,
// gets for each op of `graph` its op of the result.
StepGraph Coarsen(const StepGraph& graph, int most_ops, bool keep_roles, std::vector<int>* part_of);

}  // namespace weft::platform
