// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/buffer.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/shared_memory.h"
#include "weft/tensor/resource_handle.h"
#include "weft/tensor/variant.h"

namespace weft {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kLargest = size_t{1} << 46;
constexpr int kNumClasses = 4 * 48;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kLeastShared = size_t{16} << 10;  // smaller tensors are cheaper to copy

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

std::byte* SystemAllocate(size_t size, bool shareable) {
  if (shareable && size >= kLeastShared) {
    if (std::byte* const block = ProcessSharedMemory().Allocate(size); block != nullptr) {
      return block;
    }
  }
  const size_t alignment = size >= kHugePage ? kHugePage : kAlignment;
  void* memory = nullptr;
  if (posix_memalign(&memory, alignment, size) != 0) return nullptr;
  if (size >= kHugePage) madvise(memory, size, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

}  // namespace

struct PoolAllocator::State {
  State(size_t limit_bytes, bool shares) : limit(limit_bytes), shareable(shares) {}
  ~State() {
    for (auto& list : free) {
      for (std::byte* block : list) std::free(block);
    }
  }

  struct alignas(64) Shard {
    absl::Mutex mutex;
  };
  const size_t limit;
  const bool shareable;  // blocks may be shared memory, which the system never gets back
  std::array<Shard, kNumClasses> shards;
  std::array<std::vector<std::byte*>, kNumClasses> free;  // each guarded by its class's shard
  std::atomic<int64_t> in_use{0};
  std::atomic<int64_t> cached{0};
  std::atomic<int64_t> peak{0};
  std::atomic<int64_t> allocations{0};

  std::byte* Take(int index, size_t size) {
    {
      absl::MutexLock lock(&shards[index].mutex);
      if (!free[index].empty()) {
        std::byte* block = free[index].back();
        free[index].pop_back();
        cached.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
        return block;
      }
    }
    return SystemAllocate(size, shareable);
  }

  void GiveBack(int index, size_t size, std::byte* block) {
    in_use.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
    cached.fetch_add(static_cast<int64_t>(size), std::memory_order_relaxed);
    absl::MutexLock lock(&shards[index].mutex);
    free[index].push_back(block);
  }
};

class PooledBuffer final : public Buffer {
 public:
  PooledBuffer(std::shared_ptr<PoolAllocator::State> state, int index, size_t size, std::byte* data)
      : Buffer(data, size), state_(std::move(state)), class_(index) {}
  ~PooledBuffer() override { state_->GiveBack(class_, size_, data_); }

 private:
  const std::shared_ptr<PoolAllocator::State> state_;
  const int class_;
};

PoolAllocator::PoolAllocator(size_t limit, bool shareable)
    : state_(std::make_shared<State>(limit, shareable)) {}
PoolAllocator::~PoolAllocator() = default;

Ref<Buffer> PoolAllocator::Allocate(size_t size) {
  if (size > kLargest) return nullptr;
  const int index = ClassOf(size);
  const size_t block_size = SizeOfClass(index);
  const int64_t now =
      state_->in_use.fetch_add(static_cast<int64_t>(block_size), std::memory_order_relaxed) +
      static_cast<int64_t>(block_size);
  std::byte* block =
      static_cast<uint64_t>(now) > state_->limit ? nullptr : state_->Take(index, block_size);
  if (block == nullptr) {
    state_->in_use.fetch_sub(static_cast<int64_t>(block_size), std::memory_order_relaxed);
    return nullptr;
  }
  state_->allocations.fetch_add(1, std::memory_order_relaxed);
  int64_t peak = state_->peak.load(std::memory_order_relaxed);
  while (now > peak && !state_->peak.compare_exchange_weak(peak, now)) {
  }
  return MakeRef<PooledBuffer>(state_, index, block_size, block);
}

PoolStatistics PoolAllocator::statistics() const {
  return {.bytes_in_use = state_->in_use.load(),
          .bytes_cached = state_->cached.load(),
          .peak_bytes_in_use = state_->peak.load(),
          .num_allocations = state_->allocations.load()};
}

void PoolAllocator::Trim() {
  if (state_->shareable) return;
  for (int index = 0; index < kNumClasses; ++index) {
    std::vector<std::byte*> blocks;
    {
      absl::MutexLock lock(&state_->shards[index].mutex);
      blocks.swap(state_->free[index]);
    }
    state_->cached.fetch_sub(static_cast<int64_t>(blocks.size() * SizeOfClass(index)));
    for (std::byte* block : blocks) std::free(block);
  }
}

namespace {
PoolAllocator& HostPool() {
  // Never destroyed: tensors in static storage may outlive main().
  static PoolAllocator* pool = new PoolAllocator(SIZE_MAX, /*shareable=*/true);
  return *pool;
}

class WrappedBuffer final : public Buffer {
 public:
  WrappedBuffer(std::byte* data, size_t size, absl::AnyInvocable<void()> release)
      : Buffer(data, size), release_(std::move(release)) {}
  ~WrappedBuffer() override {
    if (release_) release_();
  }

 private:
  absl::AnyInvocable<void()> release_;
};

class ReadOnlyBuffer final : public Buffer {
 public:
  ReadOnlyBuffer(std::byte* data, size_t size, Ref<RefCounted> keep)
      : Buffer(data, size, /*read_only=*/true), keep_(std::move(keep)) {}

 private:
  const Ref<RefCounted> keep_;
};

template <typename T>
class ObjectBuffer final : public Buffer {
 public:
  explicit ObjectBuffer(T* objects, int64_t count)
      : Buffer(reinterpret_cast<std::byte*>(objects), sizeof(T) * count), objects_(objects) {}
  ~ObjectBuffer() override { delete[] objects_; }

 private:
  T* const objects_;
};

template <typename T>
Ref<Buffer> MakeObjects(int64_t count) {
  T* objects = new (std::nothrow) T[static_cast<size_t>(count)];
  if (objects == nullptr) return nullptr;
  return MakeRef<ObjectBuffer<T>>(objects, count);
}
}  // namespace

Allocator& HostAllocator() { return HostPool(); }
PoolStatistics HostPoolStatistics() { return HostPool().statistics(); }

Ref<Buffer> WrapMemory(std::byte* data, size_t size, absl::AnyInvocable<void()> release) {
  return MakeRef<WrappedBuffer>(data, size, std::move(release));
}

Ref<Buffer> WrapReadOnly(std::byte* data, size_t size, Ref<RefCounted> keep) {
  return MakeRef<ReadOnlyBuffer>(data, size, std::move(keep));
}

Ref<Buffer> AllocateObjects(DType dtype, int64_t count) {
  if (count < 0 || static_cast<uint64_t>(count) > kLargest / 64) return nullptr;
  if (dtype == DType::kString) return MakeObjects<std::string>(count);
  if (dtype == DType::kResource) return MakeObjects<ResourceHandle>(count);
  if (dtype == DType::kVariant) return MakeObjects<Variant>(count);
  return nullptr;
}

}  // namespace weft
