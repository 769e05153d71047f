// SPDX-License-Identifier: Apache-2.0
#include "base/compute_threads.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

#include <sched.h>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"

#include "base/threads.h"

namespace weft {
namespace {

// Threads that were called too late are about to find that out.
int ComputingInTheEnd() {
  for (int i = 0; i < 1000 && ComputingThreads() > 0; ++i) absl::SleepFor(absl::Milliseconds(10));
  return ComputingThreads();
}

TEST(ComputeThreadsTest, ScopesWithinScopesCountOnce) {
  EXPECT_EQ(ComputingThreads(), 0);
  {
    const ComputeScope outer;
    const ComputeScope inner;
    EXPECT_EQ(ComputingThreads(), 1);
    const ComputePause waiting;
    EXPECT_EQ(ComputingThreads(), 0);
  }
  EXPECT_EQ(ComputingThreads(), 0);
}

TEST(ComputeThreadsTest, NoMoreThreadsAreClaimedThanAreIdle) {
  const ComputeScope here;
  EXPECT_EQ(ClaimComputeThreads(5, 1), 0);
  EXPECT_EQ(ClaimComputeThreads(5, 3), 2);
  EXPECT_EQ(ClaimComputeThreads(1, 3), 0);
  Thread one("one", [] { const ClaimedThread claim; });
  Thread two("two", [] { const ClaimedThread claim; });
  one.Join();
  two.Join();
  EXPECT_EQ(ComputingThreads(), 1);
}

TEST(ComputeThreadsTest, ALoopInsideALoopTakesNoThreadThatIsBusy) {
  ThreadPool pool("test", 4);
  std::atomic<int> now{0}, most{0}, blocks{0};
  pool.ParallelFor(16, 1, [&](int64_t, int64_t) {
    pool.ParallelFor(16, 1, [&](int64_t, int64_t) {
      const int here = ++now;
      int seen = most.load();
      while (here > seen && !most.compare_exchange_weak(seen, here)) {
      }
      absl::SleepFor(absl::Microseconds(200));
      ++blocks;
      --now;
    });
  });
  EXPECT_EQ(blocks, 256);
  EXPECT_LE(most, 4);
  EXPECT_EQ(ComputingInTheEnd(), 0);
}

TEST(ComputeThreadsTest, AThreadThatBecomesIdleHelpsALoopUnderWay) {
  ThreadPool pool("test", 2);
  ASSERT_EQ(ClaimComputeThreads(2, 2), 2);  // both threads are busy with something else
  std::atomic<int> blocks{0};
  std::atomic<bool> was_helped{false};
  pool.ParallelFor(8, 1, [&](int64_t, int64_t) {
    if (pool.IsWorker()) was_helped = true;
    if (++blocks == 3) {
      Thread("one", [] { const ClaimedThread claim; }).Join();
      Thread("two", [] { const ClaimedThread claim; }).Join();
    }
    for (int i = 0; i < 1000 && blocks == 5 && !was_helped; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
  });
  EXPECT_TRUE(was_helped);
  EXPECT_EQ(ComputingInTheEnd(), 0);
}

TEST(ComputeThreadsTest, WhatABlockThrowsIsThrownToTheCallerOfTheLoop) {
  ThreadPool pool("test", 3);
  for (int i = 0; i < 50; ++i) {
    std::atomic<int> blocks{0};
    EXPECT_THROW(pool.ParallelFor(12, 1,
                                  [&](int64_t begin, int64_t) {
                                    ++blocks;
                                    if (begin == 5) std::vector<int>().at(1) = 0;
                                  }),
                 std::out_of_range);
    EXPECT_EQ(blocks, 12);
  }
}

// The calling thread and those that it makes may use only this one.
void UseOnly(int processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
}

TEST(ComputeThreadsTest,
     AHelperThatSleptOnTheCallersProcessorWakesOnAnotherAndMayUseAllAfterwards) {
  cpu_set_t all;
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "This process may use one processor.";
  ThreadPool pool("test", 2, /*spin_us=*/0, [] { return false; });
  const int here = sched_getcpu();
  Thread caller("caller", [&] {
    UseOnly(here);
    for (int round = 0; round < 20; ++round) {
      // Both threads of the pool fall asleep here.
      absl::BlockingCounter both(2);
      std::atomic<int> arrived{0};
      for (int i = 0; i < 2; ++i) {
        pool.Schedule([&] {
          UseOnly(here);
          EXPECT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
          ++arrived;
          for (int wait = 0; wait < 10000 && arrived < 2; ++wait)
            absl::SleepFor(absl::Milliseconds(1));
          both.DecrementCount();
        });
      }
      both.Wait();
      absl::SleepFor(absl::Milliseconds(5));
      std::atomic<int> elsewhere{0}, begun{0};
      pool.ParallelFor(2, 1, [&](int64_t, int64_t) {
        if (sched_getcpu() != here) ++elsewhere;
        cpu_set_t allowed;
        ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
        EXPECT_TRUE(!pool.IsWorker() || CPU_EQUAL(&allowed, &all));
        ++begun;
        // Busy, so that the helper has to find another processor.
        const absl::Time end = absl::Now() + absl::Seconds(10);
        while (begun < 2 && absl::Now() < end) {
        }
      });
      EXPECT_EQ(begun, 2);
      EXPECT_EQ(elsewhere, 1) << "round " << round;
    }
  });
}

}  // namespace
}  // namespace weft
