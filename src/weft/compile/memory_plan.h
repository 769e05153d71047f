// SPDX-License-Identifier: Apache-2.0
// Where the large tensors of a step lie in one arena.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace weft::compile {

// A buffer that is written at instruction `first` and read until `last` (both included).
struct Lifetime {
  int first = 0;
  int last = 0;
  size_t bytes = 0;
  bool Meets(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // by lifetime; multiples of 64
  size_t total = 0;             // bytes of the arena
};

// Buffers that live at the same time get separate bytes, others may share: the largest first, each
// at the lowest place that is free all its life (Pisarchyk and Lee 2020, "Efficient memory
// management for deep neural net inference", greedy by size). Quadratic in the number of lifetimes.
MemoryPlan PlanMemory(absl::Span<const Lifetime> lifetimes);
// The same where `meet` says which of them, by position, live at the same time.
MemoryPlan PlanMemory(absl::Span<const Lifetime> lifetimes,
                      absl::FunctionRef<bool(int a, int b)> meet);

}  // namespace weft::compile
