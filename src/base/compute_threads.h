// SPDX-License-Identifier: Apache-2.0
// How many threads of this process compute at this moment. Kernels that run beside each other and
// the shares within a kernel draw on the one number, so that together they keep the processor busy
// and never wait in line for it.
#pragma once

#include <cstdint>

namespace weft {

// While it lives, the calling thread counts as computing. Scopes within scopes count once.
class ComputeScope {
 public:
  ComputeScope();
  ~ComputeScope();
  ComputeScope(const ComputeScope&) = delete;
  ComputeScope& operator=(const ComputeScope&) = delete;
};

// While it lives, a thread inside a ComputeScope waits for others and does not count.
class ComputePause {
 public:
  ComputePause();
  ~ComputePause();
  ComputePause(const ComputePause&) = delete;
  ComputePause& operator=(const ComputePause&) = delete;
};

// Takes up to `most` threads that may compute in addition to those that do, as long as there are no
// more than `limit` in all. Gives how many; each begins its work with a ClaimedThread. Never waits.
int ClaimComputeThreads(int most, int limit);

// On a thread that was claimed: it counts as computing, by the claim, until the scope ends.
class ClaimedThread {
 public:
  ClaimedThread();
  ~ClaimedThread();
  ClaimedThread(const ClaimedThread&) = delete;
  ClaimedThread& operator=(const ClaimedThread&) = delete;
};

// How many threads compute or are claimed.
int ComputingThreads();
// Whether the calling thread is in a ComputeScope or works for a claim.
bool ThisThreadComputes();

// Counts, on each thread, the loops that were split up to be shared with others. A caller that
// compares two readings learns whether the code between them shares its work out by itself.
uint64_t LoopsSplitByThisThread();
void CountSplitLoop();

}  // namespace weft
