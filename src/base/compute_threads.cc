// SPDX-License-Identifier: Apache-2.0
#include "base/compute_threads.h"

#include <algorithm>
#include <atomic>

namespace weft {
namespace {

std::atomic<int> computing{0};
thread_local int depth = 0;
thread_local uint64_t split_loops = 0;

}  // namespace

ComputeScope::ComputeScope() {
  if (depth++ == 0) computing.fetch_add(1, std::memory_order_relaxed);
}

ComputeScope::~ComputeScope() {
  if (--depth == 0) computing.fetch_sub(1, std::memory_order_relaxed);
}

ComputePause::ComputePause() {
  if (depth > 0) computing.fetch_sub(1, std::memory_order_relaxed);
}

ComputePause::~ComputePause() {
  if (depth > 0) computing.fetch_add(1, std::memory_order_relaxed);
}

int ClaimComputeThreads(int most, int limit) {
  int now = computing.load(std::memory_order_relaxed);
  while (true) {
    const int claimed = std::min(most, limit - now);
    if (claimed <= 0) return 0;
    if (computing.compare_exchange_weak(now, now + claimed, std::memory_order_relaxed)) {
      return claimed;
    }
  }
}

ClaimedThread::ClaimedThread() {
  // A thread that computes already, for whom it now does this as well, needs no claim.
  if (depth++ > 0) computing.fetch_sub(1, std::memory_order_relaxed);
}

ClaimedThread::~ClaimedThread() {
  if (--depth == 0) computing.fetch_sub(1, std::memory_order_relaxed);
}

int ComputingThreads() { return computing.load(std::memory_order_relaxed); }
bool ThisThreadComputes() { return depth > 0; }

uint64_t LoopsSplitByThisThread() { return split_loops; }
void CountSplitLoop() { ++split_loops; }

}  // namespace weft
