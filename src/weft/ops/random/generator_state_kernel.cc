// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/random/generator_state_kernel.h"

#include "weft/ops/index_values.h"
#include "weft/ops/random/fill_kernel.h"

namespace weft::ops {

StatusOr<Philox> GeneratorOfState(const Tensor& state) {
  if (state.dtype() != DType::kInt64 || state.rank() != 1) {
    return InvalidArgument("RNG state must be a vector of int64, not ", DTypeName(state.dtype()),
                           " ", state.shape().ToString());
  }
  if (state.dim(0) < kStateSize) {
    return InvalidArgument("The size of the state must be at least ", kStateSize,
                           " for the Philox algorithm; got ", state.dim(0));
  }
  const auto word = [&](int i, int shift) {
    return static_cast<uint32_t>(static_cast<uint64_t>(state.data<int64_t>()[i]) >> shift);
  };
  return Philox({word(0, 0), word(0, 32), word(1, 0), word(1, 32)}, {word(2, 0), word(2, 32)});
}

void AdvanceState(uint64_t outputs, Tensor* state) {
  auto* counter = reinterpret_cast<uint64_t*>(state->data<int64_t>());
  const uint64_t steps = outputs * kReservedPerOutput;
  counter[0] += steps;
  if (counter[0] < steps) ++counter[1];
}

Status CheckAlgorithm(const Tensor& algorithm) {
  if (algorithm.rank() != 0) {
    return InvalidArgument("algorithm must be of shape [], not ", algorithm.shape().ToString());
  }
  const int64_t chosen = IndexAt(algorithm, 0);
  if (chosen == kPhiloxAlgorithm) return absl::OkStatus();
  return InvalidArgument("Unsupported algorithm id: ", chosen);
}

StatusOr<Philox> ReserveOfState(const KernelContext& c, uint64_t outputs) {
  WEFT_ASSIGN_OR_RETURN(Ref<Variable> variable, c.input_resource_variable(0));
  Philox start;
  WEFT_RETURN_IF_ERROR(variable->Update([&](Tensor& state) -> Status {
    WEFT_ASSIGN_OR_RETURN(start, GeneratorOfState(state));
    AdvanceState(outputs, &state);
    return absl::OkStatus();
  }));
  return start;
}

}  // namespace weft::ops
