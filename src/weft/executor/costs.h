// SPDX-License-Identifier: Apache-2.0
// How long the instructions of a plan take, as far as they have been measured.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace weft::executor {

// What a kernel takes less than is computed where it becomes ready: to hand it to another thread
// costs as much.
inline constexpr int64_t kWorthHandingOver = 6'000;  // nanoseconds
// What it costs to hand a kernel over, in nanoseconds.
inline constexpr int64_t kHandOver = 2'000;

// A moving average for each instruction, shared by the steps of a plan. Thread-safe.
class CostTable {
 public:
  explicit CostTable(size_t num_instructions) : costs_(num_instructions) {}

  // Counts a step. True if it is one to measure: some of the first, when what is made once has been
  // made, and one now and then.
  bool BeginStep() {
    const int64_t step = steps_.fetch_add(1, std::memory_order_relaxed) + 1;
    return (step > 1 && step <= kFirstMeasured) || step % kMeasuredEvery == 0;
  }
  int64_t steps() const { return steps_.load(std::memory_order_relaxed); }

  // `shares`: the instruction splits its work over threads by itself.
  void Saw(int instruction, int64_t nanoseconds, bool shares) {
    Cost& cost = costs_[instruction];
    const int64_t before = cost.nanoseconds.load(std::memory_order_relaxed);
    const int64_t now = before == 0 ? nanoseconds : before + (nanoseconds - before) / 4;
    cost.nanoseconds.store(now, std::memory_order_relaxed);
    if (shares) cost.shares.store(true, std::memory_order_relaxed);
  }
  int64_t nanoseconds(int instruction) const {
    return costs_[instruction].nanoseconds.load(std::memory_order_relaxed);
  }
  bool shares(int instruction) const {
    return costs_[instruction].shares.load(std::memory_order_relaxed);
  }
  size_t size() const { return costs_.size(); }

  static constexpr int64_t kFirstMeasured = 4;
  static constexpr int64_t kMeasuredEvery = 1024;

 private:
  struct Cost {
    std::atomic<int64_t> nanoseconds{0};
    std::atomic<bool> shares{false};
  };
  std::vector<Cost> costs_;
  std::atomic<int64_t> steps_{0};
};

}  // namespace weft::executor
