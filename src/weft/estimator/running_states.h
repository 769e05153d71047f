// SPDX-License-Identifier: Apache-2.0
// The states that recurrent layers begin a batch with: zeros, or what the batch before ended in.
#pragma once

#include <vector>

#include "weft/estimator/layer_call.h"

namespace weft::estimator {

struct FirstStates {
  std::vector<Endpoint> values;            // [batch, units] each
  std::vector<train::Variable> variables;  // of stateful layers; else empty
};

// For the batch of `x`. Fails where a stateful layer's batch is of no known size.
FirstStates StatesFor(LayerCall& call, Endpoint x, int64_t units, int count, bool stateful);
// Hands what a batch ended in to the next one; nothing to do if there are no variables.
void KeepStates(LayerCall& call, const FirstStates& first, const std::vector<Endpoint>& last);

}  // namespace weft::estimator
