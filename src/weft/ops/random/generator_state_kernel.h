// SPDX-License-Identifier: Apache-2.0
// Generators whose state is a variable: two numbers of counter, one of key. Thread-safe.
#pragma once

#include "weft/kernel/kernel_context.h"
#include "weft/ops/random/stateless_kernel.h"

namespace weft::ops {

inline constexpr int kStateSize = 3;

// InvalidArgument unless the state is a vector of that many int64 or more.
StatusOr<Philox> GeneratorOfState(const Tensor& state);
// Moves the counter on by what `outputs` numbers use.
void AdvanceState(uint64_t outputs, Tensor* state);
// InvalidArgument unless it is Philox.
Status CheckAlgorithm(const Tensor& algorithm);
// The generator of input 0 as it stands; the variable moves on by `outputs` numbers.
StatusOr<Philox> ReserveOfState(const KernelContext& c, uint64_t outputs);

}  // namespace weft::ops
