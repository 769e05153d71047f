// SPDX-License-Identifier: Apache-2.0
// A loop over the steps of a sequence with a state, as nodes of a graph.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "weft/graph/builder.h"

namespace weft::estimator {

// One step inside the loop's body: `x` [batch, width], the states, and what is the same in all
// steps. Gives the new states; the first of them is the step's output.
using ScanStep = std::function<std::vector<Endpoint>(GraphBuilder& body, Endpoint x,
                                                     absl::Span<const Endpoint> states,
                                                     absl::Span<const Endpoint> constants)>;

struct ScanInputs {
  Endpoint steps;  // float [time, batch, width]
  Endpoint mask;   // float [time, batch], 0 or 1; empty: all steps are there
  bool zero_output_for_mask = false;
  int64_t width = 0;
  int64_t units = 0;  // states are [batch, units]
  std::vector<Endpoint> states;
  std::vector<Endpoint> constants;
};

struct ScanResults {
  Endpoint outputs;  // [time, batch, units]
  Endpoint last;     // [batch, units]
  std::vector<Endpoint> states;
};

// Runs `step` over all steps in order; gradients flow through.
ScanResults Scan(GraphBuilder& b, const std::string& name, const ScanInputs& in,
                 const ScanStep& step);

}  // namespace weft::estimator
