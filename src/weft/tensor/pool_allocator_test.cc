// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/pool_allocator.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"

#include "base/process_stats.h"
#include "base/threads.h"
#include "weft/tensor/tensor.h"

namespace weft {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

Ref<Buffer> Touched(PoolAllocator& pool, size_t bytes) {
  Ref<Buffer> buffer = pool.Allocate(bytes);
  if (buffer) std::memset(buffer->data(), 1, bytes);
  return buffer;
}

TEST(PoolAllocator, ABlockThatComesBackIsGivenOutAgain) {
  PoolAllocator pool;
  Ref<Buffer> buffer = pool.Allocate(1000);
  std::byte* const data = buffer->data();
  buffer.reset();
  EXPECT_GT(pool.statistics().bytes_cached, 0);
  EXPECT_EQ(pool.Allocate(1001)->data(), data);
  EXPECT_EQ(pool.statistics().bytes_in_use, 0);
}

TEST(PoolAllocator, WhatNobodyAskedForGoesBackByAge) {
  PoolAllocator pool;
  const int64_t before = ReadProcessStats().resident_bytes;
  for (const size_t size : {40 * kMegabyte, 100 * kMegabyte, 7 * kMegabyte, size_t{3000}})
    Touched(pool, size);
  EXPECT_GT(pool.statistics().bytes_cached, 100 * static_cast<int64_t>(kMegabyte));
  for (uint32_t i = 1; i < kPoolAgesKept; ++i) {
    // One that is used all the time stays.
    pool.Allocate(7 * kMegabyte);
    EXPECT_EQ(AgePool(pool), 0u);
  }
  EXPECT_GT(AgePool(pool), 100 * kMegabyte);
  const int64_t left = pool.statistics().bytes_cached;
  EXPECT_GE(left, 7 * static_cast<int64_t>(kMegabyte));
  EXPECT_LT(left, 10 * static_cast<int64_t>(kMegabyte));
  EXPECT_LT(ReadProcessStats().resident_bytes - before, 60 * static_cast<int64_t>(kMegabyte));
}

TEST(PoolAllocator, ABlockInsteadOfOthersTakesNoMoreOfTheSystem) {
  PoolAllocator pool;
  {
    std::vector<Ref<Buffer>> others;
    for (int i = 0; i < 8; ++i) others.push_back(Touched(pool, 5 * kMegabyte));
  }
  const int64_t cached = pool.statistics().bytes_cached;
  const Ref<Buffer> kept = AllocateInstead(pool, 32 * kMegabyte);
  ASSERT_TRUE(kept);
  EXPECT_LE(pool.statistics().bytes_cached, cached - 32 * static_cast<int64_t>(kMegabyte));
  // One that is there already costs the others nothing.
  const int64_t left = pool.statistics().bytes_cached;
  const Ref<Buffer> again = AllocateInstead(pool, 5 * kMegabyte);
  EXPECT_EQ(pool.statistics().bytes_cached, left - 5 * static_cast<int64_t>(kMegabyte));
}

TEST(PoolAllocator, SizesThatChangeDoNotPileUp) {
  PoolAllocator pool;
  int64_t most = 0;
  for (int step = 0; step < 200; ++step) {
    // Each step holds two tensors of a size of its own, 60 to 260 MB together.
    const size_t size = (30 + static_cast<size_t>(step * 37 % 100)) * kMegabyte;
    const Ref<Buffer> one = pool.Allocate(size), two = pool.Allocate(size);
    const PoolStatistics now = pool.statistics();
    most = std::max(most, now.bytes_in_use + now.bytes_cached);
  }
  // 1.5 times what two of the largest take, a fifth for the classes, and the slack.
  EXPECT_LT(most, static_cast<int64_t>((260 * 3 / 2 * 5 / 4 + 64) * kMegabyte));
}

TEST(PoolAllocator, TheLimitCountsWhatIsCachedAndIsToldByNull) {
  PoolAllocator pool(100 * kMegabyte);
  Touched(pool, 60 * kMegabyte);
  // Fits only when the cached block goes.
  const Ref<Buffer> other = pool.Allocate(90 * kMegabyte);
  ASSERT_TRUE(other);
  EXPECT_EQ(pool.statistics().bytes_cached, 0);
  EXPECT_FALSE(pool.Allocate(20 * kMegabyte));
  EXPECT_FALSE(pool.Allocate(SIZE_MAX));
  SetPoolLimit(pool, 200 * kMegabyte);
  EXPECT_TRUE(pool.Allocate(20 * kMegabyte));
}

TEST(PoolAllocator, TheProcessesPoolGivesBackByItself) {
  {
    StatusOr<Tensor> large = Tensor::Zeros(DType::kFloat, Shape{64, 1024, 1024});
    ASSERT_TRUE(large.ok()) << large.status();
  }
  EXPECT_GE(HostPoolStatistics().bytes_cached, 256 * static_cast<int64_t>(kMegabyte));
  const absl::Time give_up = absl::Now() + absl::Seconds(60);
  while (HostPoolStatistics().bytes_cached > static_cast<int64_t>(kMegabyte)) {
    ASSERT_LT(absl::Now(), give_up);
    absl::SleepFor(absl::Milliseconds(100));
  }
  EXPECT_LT(ReadProcessStats().resident_bytes, 200 * static_cast<int64_t>(kMegabyte));
}

// Small blocks stay with the thread that let them go, a few of each size, until it ends.
TEST(PoolAllocator, AThreadTakesTheSmallBlocksAgainThatItLetGo) {
  const int64_t before = HostPoolStatistics().bytes_in_use;
  Thread("takes", [] {
    std::vector<Ref<Buffer>> buffers;
    for (int i = 0; i < 1000; ++i) buffers.push_back(HostAllocator().Allocate(100));
    std::byte* const last = buffers.back()->data();
    std::memset(last, 1, 100);
    buffers.pop_back();
    EXPECT_EQ(HostAllocator().Allocate(101)->data(), last);
    // Two live ones never share a block.
    const Ref<Buffer> one = HostAllocator().Allocate(100), two = HostAllocator().Allocate(100);
    EXPECT_NE(one->data(), two->data());
    EXPECT_TRUE(one->HasOneRef());
    // Those of another thread stay where they are let go.
    Thread("lets go", [given = std::move(buffers)]() mutable { given.clear(); }).Join();
  }).Join();
  EXPECT_EQ(HostPoolStatistics().bytes_in_use, before);
}

TEST(PoolAllocator, WhatIsNoPlainMemoryKeepsToTheLimitToo) {
  EXPECT_TRUE(absl::IsResourceExhausted(
      Tensor::Allocate(DType::kString, Shape{int64_t{1} << 40}).status()));
  EXPECT_TRUE(absl::IsResourceExhausted(
      Tensor::Allocate(DType::kVariant, Shape{int64_t{1} << 62}).status()));
  const size_t limit = HostMemoryLimit();
  EXPECT_LT(limit, SIZE_MAX);
  SetHostMemoryLimit(10 * kMegabyte);
  EXPECT_FALSE(Tensor::Allocate(DType::kString, Shape{1 << 20}).ok());
  const Status refused = Tensor::Allocate(DType::kFloat, Shape{3 << 20}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  SetHostMemoryLimit(limit);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Blocks come back in destructors, which may not throw, and just where memory is short.
TEST(PoolAllocator, BlocksComeBackWhereThereIsNoMemoryLeft) {
  const auto come_back = [] {
    // Abseil looks for lock cycles with memory of its own, until a pool of threads turns it off.
    absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
    std::vector<Ref<Buffer>> buffers(200000);
    {
      PoolAllocator pool;
      for (Ref<Buffer>& buffer : buffers) buffer = pool.Allocate(64);
      rlimit limit{};
      getrlimit(RLIMIT_AS, &limit);
      limit.rlim_cur = 1;
      setrlimit(RLIMIT_AS, &limit);
      for (size_t size = 256 * kMegabyte; size >= 16; size /= 2) {
        while (std::malloc(size) != nullptr) {
        }
      }
      buffers.clear();
    }
    _exit(0);
  };
  EXPECT_EXIT(come_back(), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace weft
