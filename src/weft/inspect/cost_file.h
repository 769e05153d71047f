// SPDX-License-Identifier: Apache-2.0
// What ops, tensors and links of a step cost, as the JSON that plans are made from
// (docs/placement.md has the format).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/executor/step_trace.h"

namespace weft::inspect {

// Seconds are of one step; negative: not measured.
struct OpCost {
  std::string name;
  std::string op;
  std::string device;
  std::vector<std::string> inputs;  // "op", "op:PORT"
  std::vector<executor::OutputTrace> outputs;
  int64_t state_bytes = 0;
  double seconds = -1;
  double least_seconds = -1;
};

struct LinkCost {
  std::string from;  // devices
  std::string to;
  double transfers = 0;  // a step
  double bytes = 0;      // a step
  double seconds = 0;    // a step
};

struct StepCosts {
  int64_t steps = 0;
  double step_seconds = -1;
  double least_seconds = -1;
  int64_t batch = 0;  // examples a step; 0: not known
  std::vector<OpCost> ops;
  std::vector<LinkCost> links;
};

// The size that most tensors from outside of the step have as their first; 0 if there is none.
int64_t BatchOf(const std::vector<OpCost>& ops);

// One JSON text, with a fingerprint of the names, ops and edges.
std::string FormatCosts(const StepCosts& costs);

}  // namespace weft::inspect
