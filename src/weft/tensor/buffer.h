// SPDX-License-Identifier: Apache-2.0
// Memory of tensors: ref-counted, 64-byte aligned blocks taken from a pool that keeps what it gets
// back, because a fresh page costs more than most kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"

#include "base/ref.h"
#include "weft/tensor/dtype.h"

namespace weft {

// A block of bytes with one or more owners. Contents are not synchronised.
class Buffer : public RefCounted {
 public:
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 protected:
  Buffer(std::byte* data, size_t size) : data_(data), size_(size) {}
  std::byte* data_;
  size_t size_;
};

// Where tensors get their memory. Thread-safe. Null only when the system has no memory left or
// `size` is absurd: callers turn that into ResourceExhausted.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // At least `size` bytes, 64-byte aligned, contents arbitrary.
  virtual Ref<Buffer> Allocate(size_t size) = 0;
};

struct PoolStatistics {
  int64_t bytes_in_use = 0;
  int64_t bytes_cached = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t num_allocations = 0;
};

// Size-classed free lists over the system allocator: 4 classes a power of two, so that at most a
// fifth is wasted. Blocks return here when their last owner lets go.
class PoolAllocator : public Allocator {
 public:
  // Refuses to have more than `limit` bytes in use.
  explicit PoolAllocator(size_t limit = SIZE_MAX);
  ~PoolAllocator() override;
  Ref<Buffer> Allocate(size_t size) override;
  PoolStatistics statistics() const;
  // Gives cached blocks back to the system.
  void Trim();

 private:
  struct State;
  friend class PooledBuffer;
  std::shared_ptr<State> state_;  // shared with blocks that outlive the pool
};

// The process's pool: host memory of the CPU device.
Allocator& HostAllocator();
PoolStatistics HostPoolStatistics();

// A buffer over memory that somebody else owns; `release` runs when the last owner lets go.
Ref<Buffer> WrapMemory(std::byte* data, size_t size, absl::AnyInvocable<void()> release);
// A buffer of `count` default-made strings, handles or variants (not IsPlain).
Ref<Buffer> AllocateObjects(DType dtype, int64_t count);

}  // namespace weft
