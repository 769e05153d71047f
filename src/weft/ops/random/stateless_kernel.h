// SPDX-License-Identifier: Apache-2.0
// Generators that tensors name: by two seeds, by a key and a counter, by a variable's state.
#pragma once

#include "weft/kernel/kernel_context.h"
#include "weft/ops/random/philox_kernel.h"

namespace weft::ops {

// Numbers of algorithms, as ops take them.
inline constexpr int32_t kPhiloxAlgorithm = 1, kAnyAlgorithm = 3;

// The key and the counter, of one and two numbers, that two seeds stand for.
struct KeyAndCounter {
  uint64_t key;
  uint64_t counter[2];
};
StatusOr<KeyAndCounter> MixSeeds(const Tensor& seeds);

// The generators that they name. InvalidArgument for wrong shapes and other algorithms.
StatusOr<Philox> GeneratorOfSeed(const Tensor& seeds);
StatusOr<Philox> GeneratorOfKey(const Tensor& key, const Tensor& counter, const Tensor& algorithm);

// Fills `out`, of 32- or 64-bit integers, with the generator's words; an error where the step was
// cancelled meanwhile.
Status FillWords(KernelContext& c, const Philox& start, Tensor& out);

}  // namespace weft::ops
