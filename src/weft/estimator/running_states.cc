// SPDX-License-Identifier: Apache-2.0
#include "weft/estimator/running_states.h"

#include "absl/strings/str_cat.h"

#include "weft/estimator/graph_writing.h"

namespace weft::estimator {

FirstStates StatesFor(LayerCall& call, Endpoint x, int64_t units, int count, bool stateful) {
  GraphBuilder& b = call.b();
  FirstStates first;
  if (!b.ok()) return first;
  if (!stateful) {
    const Endpoint shape = b.Op(
        "Pack",
        {std::vector<Endpoint>{SizeOf(b, x, 0), b.Scalar<int32_t>(static_cast<int32_t>(units))}});
    first.values.assign(count, b.Op("Fill", {shape, Number(b, DType::kFloat, 0)}));
    return first;
  }
  const int64_t batch = b.ShapeOf(x).dim(0);
  if (batch < 0) {
    call.Fail(
        InvalidArgument("a stateful layer needs a batch of known size (Input with `batch`), got ",
                        b.ShapeOf(x).ToString()));
    return first;
  }
  for (int i = 0; i < count; ++i) {
    const train::Variable* state = call.StateOf(absl::StrCat("state_", i), Shape{batch, units});
    if (state == nullptr) return first;
    first.variables.push_back(*state);
    first.values.push_back(state->value);
  }
  return first;
}

void KeepStates(LayerCall& call, const FirstStates& first, const std::vector<Endpoint>& last) {
  for (size_t i = 0; i < first.variables.size() && i < last.size(); ++i) {
    call.KeepState(first.variables[i], last[i]);
  }
}

}  // namespace weft::estimator
