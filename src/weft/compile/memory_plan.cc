// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace weft::compile {
namespace {

constexpr size_t kAlignment = 64;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

MemoryPlan PlanMemory(absl::Span<const Lifetime> lifetimes) {
  return PlanMemory(lifetimes, [&](int a, int b) { return lifetimes[a].Meets(lifetimes[b]); });
}

MemoryPlan PlanMemory(absl::Span<const Lifetime> lifetimes,
                      absl::FunctionRef<bool(int a, int b)> meet) {
  MemoryPlan plan;
  plan.offsets.resize(lifetimes.size());
  std::vector<int> by_size(lifetimes.size());
  std::iota(by_size.begin(), by_size.end(), 0);
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](int a, int b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  std::vector<int> placed;  // by offset
  for (const int index : by_size) {
    const size_t bytes = Aligned(lifetimes[index].bytes);
    size_t offset = 0;
    for (const int other : placed) {
      if (!meet(index, other)) continue;
      if (offset + bytes <= plan.offsets[other]) break;
      offset = std::max(offset, plan.offsets[other] + Aligned(lifetimes[other].bytes));
    }
    plan.offsets[index] = offset;
    plan.total = std::max(plan.total, offset + bytes);
    const auto at =
        std::upper_bound(placed.begin(), placed.end(), offset,
                         [&](size_t value, int other) { return value < plan.offsets[other]; });
    placed.insert(at, index);
  }
  return plan;
}

}  // namespace weft::compile
