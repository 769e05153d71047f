// SPDX-License-Identifier: Apache-2.0
// How gradients flow back through one kind of op: a list of calls, made once.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"

#include "base/status.h"
#include "weft/imperative/array.h"
#include "weft/imperative/op_kind.h"

namespace weft::imperative {

class Runtime;

// Immutable once made.
class Backward {
 public:
  // For calls whose outputs have gradients where `has_gradient` says so. Unimplemented names an op
  // that has none.
  static StatusOr<std::shared_ptr<const Backward>> Of(Runtime& runtime, const OpKind& kind,
                                                      const std::vector<bool>& has_gradient);

  // The gradients of the inputs, nothing for those that have none. The calls are the runtime's own:
  // tapes record them.
  StatusOr<std::vector<Array>> Run(Runtime& runtime, absl::Span<const Array> inputs,
                                   absl::Span<const Array> outputs,
                                   absl::Span<const Array> of_outputs) const;

 private:
  struct Call {
    const OpKind* kind = nullptr;
    Tensor constant;  // instead of a call
    std::vector<int> inputs;
    int first_output = 0;
  };
  static StatusOr<std::shared_ptr<const Backward>> Make(Runtime& runtime, const OpKind& kind,
                                                        const std::vector<bool>& has_gradient);

  // Values are numbered: inputs, outputs, gradients of outputs, then what the calls give.
  int num_values_ = 0;
  std::vector<Call> calls_;
  std::vector<int> results_;  // by input; -1: none
};

}  // namespace weft::imperative
