// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/pool_allocator.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/mman.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"

#include "base/huge_pages.h"
#include "base/memory_limit.h"
#include "base/shared_memory.h"
#include "base/threads.h"

namespace weft {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kLargest = size_t{1} << 46;
constexpr int kNumClasses = 4 * 48;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLeastShared = size_t{16} << 10;  // smaller tensors are cheaper to copy
// Blocks of at least this size are mapped one by one, so that the system gets each back whole.
constexpr size_t kLeastMapped = size_t{256} << 10;
constexpr size_t kPage = 4096;
constexpr int64_t kLeastBytesToAge = int64_t{1} << 20;

// Class 4k+j holds blocks of 2^k * (1 + j/4) * 64 bytes.
int ClassOf(size_t size) {
  const size_t units = (std::max<size_t>(size, 1) + kAlignment - 1) / kAlignment;
  const int power = std::bit_width(units) - 1;
  const size_t base = size_t{1} << power;
  const size_t quarter = std::max<size_t>(base / 4, 1);
  const size_t steps = (units - base + quarter - 1) / quarter;
  return static_cast<int>(4 * power + steps);
}

size_t SizeOfClass(int index) {
  const size_t base = size_t{1} << (index / 4);
  return (base + (base * (index % 4) + 3) / 4) * kAlignment;
}

size_t WholePages(size_t size) { return (size + kPage - 1) / kPage * kPage; }

// At a multiple of 2 MB, in huge pages where the system gives them.
std::byte* MapBlock(size_t size) {
  const size_t alignment = size >= kHugePage ? kHugePage : kPage;
  size = WholePages(size);
  void* const all =
      mmap(nullptr, size + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(all);
  const size_t front = (alignment - reinterpret_cast<uintptr_t>(begin) % alignment) % alignment;
  if (front > 0) munmap(begin, front);
  std::byte* const block = begin + front;
  munmap(block + size, alignment - front);
  AskForHugePages(block, size);
  return block;
}

std::byte* SystemAllocate(size_t size, bool shareable) {
  if (shareable && size >= kLeastShared) {
    if (std::byte* const block = ProcessSharedMemory().Allocate(size); block != nullptr) {
      return block;
    }
  }
  if (size >= kLeastMapped) return MapBlock(size);
  void* memory = nullptr;
  return posix_memalign(&memory, kAlignment, size) == 0 ? static_cast<std::byte*>(memory) : nullptr;
}

void SystemFree(std::byte* block, size_t size, bool shareable) {
  if (shareable && size >= kLeastShared && ProcessSharedMemory().Find(block, size).has_value()) {
    ProcessSharedMemory().Free(block, size);
  } else if (size >= kLeastMapped) {
    munmap(block, WholePages(size));
  } else {
    std::free(block);
  }
}

void RaiseTo(std::atomic<int64_t>& most, int64_t value) {
  int64_t seen = most.load(std::memory_order_relaxed);
  while (value > seen && !most.compare_exchange_weak(seen, value)) {
  }
}

}  // namespace

// Ages the process's pool once a second while it caches something worth it.
namespace {

class Ager {
 public:
  explicit Ager(PoolAllocator* pool) : pool_(pool) {}
  // Cheap when it is awake. Buffers that go call it, wherever that is: it throws nothing. Where
  // memory is too short for a thread, the next one that goes tries again.
  void Wake() noexcept {
    if (awake_.load(std::memory_order_relaxed)) return;
    absl::MutexLock lock(&mutex_);
    try {
      if (!thread_) thread_ = std::make_unique<Thread>("weft-memory", [this] { Run(); });
      awake_.store(true, std::memory_order_relaxed);
    } catch (const std::exception&) {
      thread_ = nullptr;
    }
  }

 private:
  void Run() {
    size_t freed = 0;
    while (true) {
      {
        absl::MutexLock lock(&mutex_);
        const auto awake = [this] { return awake_.load(std::memory_order_relaxed); };
        mutex_.Await(absl::Condition(&awake));
      }
      absl::SleepFor(absl::Seconds(1));
      freed += AgePool(*pool_);
      if (pool_->statistics().bytes_cached > kLeastBytesToAge) continue;
      awake_.store(false);
      // What was cached between the look and the rest calls nobody any more.
      if (pool_->statistics().bytes_cached > kLeastBytesToAge) awake_.store(true);
      // The C library keeps what lies below a block that is still in use.
      if (std::exchange(freed, 0) > 0) malloc_trim(0);
    }
  }

  PoolAllocator* const pool_;
  absl::Mutex mutex_;
  std::atomic<bool> awake_{false};
  std::unique_ptr<Thread> thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

struct PoolAllocator::State {
  struct Block {
    std::byte* data;
    uint32_t age;  // of the pool when it came back
  };
  struct alignas(64) Shard {
    absl::Mutex mutex;
    std::vector<Block> free ABSL_GUARDED_BY(mutex);  // the one that came last is taken first
  };
  static constexpr int64_t kSlack = int64_t{64} << 20;

  State(size_t limit_bytes, bool shares) : limit(limit_bytes), shareable(shares) {}
  ~State() { Release(SIZE_MAX, 0); }

  std::atomic<size_t> limit;
  const bool shareable;
  absl::AnyInvocable<void()> wake_ager;  // none: nobody calls AgePool by itself
  std::array<Shard, kNumClasses> shards;
  std::atomic<uint32_t> age{0};
  std::atomic<int64_t> in_use{0};
  std::atomic<int64_t> cached{0};
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> allocations{0};
  // The most in use in this span of kPoolAgesKept units, and in the one before.
  std::atomic<int64_t> peak_now{0}, peak_before{0};

  std::byte* Take(int index, size_t size) {
    {
      Shard& shard = shards[static_cast<size_t>(index)];
      absl::MutexLock lock(&shard.mutex);
      if (!shard.free.empty()) {
        std::byte* block = shard.free.back().data;
        shard.free.pop_back();
        cached.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
        return block;
      }
    }
    MakeRoom();
    std::byte* block = SystemAllocate(size, shareable);
    if (block == nullptr && Release(SIZE_MAX, 0) > 0) block = SystemAllocate(size, shareable);
    return block;
  }

  // Before more is taken from the system. What is asked for is in use already.
  void MakeRoom() {
    if (cached.load() == 0) return;
    const int64_t recent = std::max(peak_now.load(), peak_before.load());
    const auto allowed = static_cast<uint64_t>(recent + recent / 2 + kSlack);
    const auto most = static_cast<int64_t>(std::min<uint64_t>(allowed, limit.load()));
    // What has rested longest goes first.
    for (uint32_t rested = kPoolAgesKept;; rested /= 2) {
      const int64_t excess = in_use.load() + cached.load() - most;
      if (excess <= 0) return;
      Release(static_cast<size_t>(excess), rested);
      if (rested == 0) return;
    }
  }

  // As many cached bytes as a block of `size` needs, unless one of its class is there.
  void GiveBackFor(size_t size) {
    if (size > kLargest) return;
    const int index = ClassOf(size);
    {
      Shard& shard = shards[static_cast<size_t>(index)];
      absl::MutexLock lock(&shard.mutex);
      if (!shard.free.empty()) return;
    }
    Release(SizeOfClass(index), 0);
  }

  // False where memory is too short for the list of what is free.
  bool Keep(int index, std::byte* block) noexcept {
    Shard& shard = shards[static_cast<size_t>(index)];
    absl::MutexLock lock(&shard.mutex);
    try {
      shard.free.push_back({block, age.load(std::memory_order_relaxed)});
    } catch (const std::bad_alloc&) {
      return false;
    }
    return true;
  }

  void GiveBack(int index, size_t size, std::byte* block) {
    in_use.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
    const int64_t now = cached.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed) +
                        static_cast<int64_t>(size);
    if (!Keep(index, block)) {
      cached.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
      SystemFree(block, size, shareable);
      return;
    }
    if (wake_ager && now > kLeastBytesToAge) wake_ager();
  }

  // Gives cached blocks back that have rested for at least `rested` units, larger ones first, until
  // `bytes` are free.
  size_t Release(size_t bytes, uint32_t rested) {
    size_t freed = 0;
    const uint32_t now = age.load();
    for (int index = kNumClasses - 1; index >= 0 && freed < bytes; --index) {
      Shard& shard = shards[static_cast<size_t>(index)];
      const size_t size = SizeOfClass(index);
      // Each block that goes holds the address of the one before it: there may be no memory for a
      // list of them.
      std::byte* old = nullptr;
      size_t count = 0;
      {
        absl::MutexLock lock(&shard.mutex);
        while (count < shard.free.size() && now - shard.free[count].age >= rested &&
               freed < bytes) {
          std::byte* const block = shard.free[count].data;
          std::memcpy(block, &old, sizeof(old));
          old = block;
          freed += size;
          ++count;
        }
        shard.free.erase(shard.free.begin(), shard.free.begin() + static_cast<ptrdiff_t>(count));
      }
      cached.fetch_sub(static_cast<int64_t>(count * size), std::memory_order_relaxed);
      while (old != nullptr) {
        std::byte* const block = old;
        std::memcpy(&old, block, sizeof(old));
        SystemFree(block, size, shareable);
      }
    }
    return freed;
  }
};

class PooledBuffer final : public Buffer {
 public:
  PooledBuffer(std::shared_ptr<PoolAllocator::State> state, int index, size_t size, std::byte* data)
      : Buffer(data, size), state_(std::move(state)), class_(index) {}
  ~PooledBuffer() override { state_->GiveBack(class_, size_, data_); }
  static PoolAllocator::State& StateOf(PoolAllocator& pool) { return *pool.state_; }

 private:
  friend class ThreadBlocks;
  void Dispose() const override;

  const std::shared_ptr<PoolAllocator::State> state_;
  const int class_;
  PooledBuffer* next_ = nullptr;  // among those that a thread keeps
};

// Small blocks of the process's pool that a thread let go and takes again, with their buffers:
// steps of many small tensors would otherwise spend more on counters and locks than on arithmetic.
// To the pool they are in use, a megabyte a thread at most. They go back when the thread ends.
class ThreadBlocks {
 public:
  // Null where it has none.
  static PooledBuffer* Take(int index) {
    ThreadBlocks* const own = current_;
    if (own == nullptr || index >= kClasses || own->first_[index] == nullptr) return nullptr;
    PooledBuffer* const buffer = own->first_[index];
    own->first_[index] = buffer->next_;
    --own->count_[index];
    buffer->Renew();
    return buffer;
  }
  // False where the buffer must go.
  static bool Keep(PooledBuffer* buffer) {
    const int index = buffer->class_;
    if (index >= kClasses) return false;
    ThreadBlocks* const own = current_ != nullptr ? current_ : Begin();
    if (own == nullptr || own->count_[index] >= MostOf(buffer->size())) return false;
    buffer->next_ = own->first_[index];
    own->first_[index] = buffer;
    ++own->count_[index];
    return true;
  }

 private:
  static constexpr int kClasses = 4 * 8 + 1;  // of up to 16 KB
  static uint32_t MostOf(size_t size) {
    return static_cast<uint32_t>(std::clamp<size_t>((size_t{32} << 10) / size, 2, 32));
  }

  // Gives all back at the end of the thread, when no others begin.
  struct AtEnd {
    ~AtEnd() {
      has_ended_ = true;
      ThreadBlocks* const own = std::exchange(current_, nullptr);
      for (PooledBuffer* buffer : own->first_) {
        while (buffer != nullptr) delete std::exchange(buffer, buffer->next_);
      }
      delete own;
    }
  };
  static ThreadBlocks* Begin() {
    if (has_ended_) return nullptr;
    current_ = new (std::nothrow) ThreadBlocks();
    if (current_ != nullptr) static thread_local AtEnd at_end;
    return current_;
  }

  static thread_local ThreadBlocks* current_;
  static thread_local bool has_ended_;
  PooledBuffer* first_[kClasses] = {};
  uint32_t count_[kClasses] = {};
};

constinit thread_local ThreadBlocks* ThreadBlocks::current_ = nullptr;
constinit thread_local bool ThreadBlocks::has_ended_ = false;

void PooledBuffer::Dispose() const {
  // Only the process's pool lives as long as all threads.
  if (state_->shareable && ThreadBlocks::Keep(const_cast<PooledBuffer*>(this))) return;
  delete this;
}

PoolAllocator::PoolAllocator(size_t limit, bool shareable)
    : state_(std::make_shared<State>(limit, shareable)) {}
PoolAllocator::~PoolAllocator() = default;

Ref<Buffer> PoolAllocator::Allocate(size_t size) {
  if (size > kLargest) return nullptr;
  const int index = ClassOf(size);
  if (state_->shareable) {
    if (PooledBuffer* const kept = ThreadBlocks::Take(index); kept != nullptr) {
      state_->allocations.fetch_add(1, std::memory_order_relaxed);
      return Ref<Buffer>(kept);
    }
  }
  const size_t block_size = SizeOfClass(index);
  const int64_t now =
      state_->in_use.fetch_add(static_cast<int64_t>(block_size), std::memory_order_relaxed) +
      static_cast<int64_t>(block_size);
  std::byte* block = static_cast<uint64_t>(now) > state_->limit.load(std::memory_order_relaxed)
                         ? nullptr
                         : state_->Take(index, block_size);
  if (block == nullptr) {
    state_->in_use.fetch_sub(static_cast<int64_t>(block_size), std::memory_order_relaxed);
    return nullptr;
  }
  state_->allocations.fetch_add(1, std::memory_order_relaxed);
  RaiseTo(state_->peak, now);
  RaiseTo(state_->peak_now, now);
  return MakeRef<PooledBuffer>(state_, index, block_size, block);
}

PoolStatistics PoolAllocator::statistics() const {
  return {.bytes_in_use = state_->in_use.load(),
          .bytes_cached = state_->cached.load(),
          .peak_bytes_in_use = state_->peak.load(),
          .num_allocations = state_->allocations.load()};
}

void PoolAllocator::Trim() { state_->Release(SIZE_MAX, 0); }

size_t AgePool(PoolAllocator& pool) {
  auto& state = PooledBuffer::StateOf(pool);
  const uint32_t age = state.age.fetch_add(1) + 1;
  if (age % kPoolAgesKept == 0) {
    state.peak_before.store(state.peak_now.exchange(state.in_use.load()));
  }
  return state.Release(SIZE_MAX, kPoolAgesKept);
}

Ref<Buffer> AllocateInstead(Allocator& allocator, size_t size) {
  if (auto* const pool = dynamic_cast<PoolAllocator*>(&allocator); pool != nullptr) {
    PooledBuffer::StateOf(*pool).GiveBackFor(size);
  }
  return allocator.Allocate(size);
}

void SetPoolLimit(PoolAllocator& pool, size_t bytes) {
  PooledBuffer::StateOf(pool).limit.store(bytes);
}

namespace {

size_t DefaultLimit() {
  const uint64_t group = ControlGroupMemoryLimit();
  const uint64_t machine = MachineMemory();
  // A tenth is left for what is no tensor: the program, messages under way.
  return group < machine ? group / 10 * 9 : machine;
}

PoolAllocator& HostPool() {
  // Never destroyed: tensors in static storage may outlive main().
  static PoolAllocator* const pool = [] {
    auto* const made = new PoolAllocator(DefaultLimit(), /*shareable=*/true);
    PooledBuffer::StateOf(*made).wake_ager = [ager = new Ager(made)] { ager->Wake(); };
    return made;
  }();
  return *pool;
}

}  // namespace

Allocator& HostAllocator() { return HostPool(); }
PoolStatistics HostPoolStatistics() { return HostPool().statistics(); }
void SetHostMemoryLimit(size_t bytes) { SetPoolLimit(HostPool(), bytes); }
size_t HostMemoryLimit() { return PooledBuffer::StateOf(HostPool()).limit.load(); }

bool HostHasRoomFor(size_t bytes) {
  const auto in_use = static_cast<uint64_t>(HostPoolStatistics().bytes_in_use);
  const size_t limit = HostMemoryLimit();
  return bytes <= limit && in_use <= limit - bytes;
}

}  // namespace weft
