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

class DeviceMemory;

// What stands for the address of bytes that the host cannot reach: no system maps memory there, so
// that code which takes a tensor of a device for one of the host faults at once and names itself.
inline constexpr uintptr_t kNotOnHost = uintptr_t{0x00DE} << 48;

// A block of bytes with one or more owners. Contents are not synchronised.
class Buffer : public RefCounted {
 public:
  // Of a block in a device's memory: kNotOnHost (see DeviceBuffer for its address there).
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }
  // The memory that the bytes lie in; null for the host's.
  DeviceMemory* memory() const { return memory_; }
  // Another process's memory: must not be written, whoever owns it.
  bool read_only() const { return read_only_; }
  // True when the caller's Ref is the only one and the bytes may be written.
  bool HasOneRef() const { return !read_only_ && RefCounted::HasOneRef(); }

 protected:
  Buffer(std::byte* data, size_t size, bool read_only = false)
      : data_(data), size_(size), read_only_(read_only) {}
  Buffer(DeviceMemory* memory, size_t size)
      : data_(reinterpret_cast<std::byte*>(kNotOnHost)),
        size_(size),
        read_only_(false),
        memory_(memory) {}
  std::byte* data_;
  size_t size_;

 private:
  const bool read_only_;
  DeviceMemory* const memory_ = nullptr;
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
// fifth is wasted. Blocks return here when their last owner lets go; of the process's pool each
// thread keeps a few small ones for itself, which count as in use.
class PoolAllocator : public Allocator {
 public:
  // Refuses to have more than `limit` bytes in use.
  // `shareable`: it lives as long as the process and may use ProcessSharedMemory().
  explicit PoolAllocator(size_t limit = SIZE_MAX, bool shareable = false);
  ~PoolAllocator() override;
  Ref<Buffer> Allocate(size_t size) override;
  PoolStatistics statistics() const;
  // Gives cached blocks back to the system; a shareable pool keeps them.
  void Trim();

 private:
  struct State;
  friend class PooledBuffer;
  std::shared_ptr<State> state_;  // shared with blocks that outlive the pool
};

// The process's pool: host memory of the CPU device. Its larger blocks come from
// ProcessSharedMemory() where that is enabled.
Allocator& HostAllocator();
PoolStatistics HostPoolStatistics();

// A buffer over memory that somebody else owns; `release` runs when the last owner lets go.
Ref<Buffer> WrapMemory(std::byte* data, size_t size, absl::AnyInvocable<void()> release);
// The same over memory that must not be written; `keep` holds it.
Ref<Buffer> WrapReadOnly(std::byte* data, size_t size, Ref<RefCounted> keep);
// A buffer of `count` default-made strings, handles or variants (not IsPlain).
Ref<Buffer> AllocateObjects(DType dtype, int64_t count);

}  // namespace weft
