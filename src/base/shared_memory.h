// SPDX-License-Identifier: Apache-2.0
// Memory that other processes of this host may map: blocks carved from memfds, so that bytes cross
// between processes by (descriptor, offset) and without a copy.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/posix_file.h"
#include "base/status.h"

namespace weft {

// A memfd as another process finds it: /proc/<its pid>/fd/<fd>.
struct SharedFile {
  int32_t fd = -1;
  uint64_t inode = 0;  // tells it from a later file with the same number
  uint64_t bytes = 0;
};

// A mapped memfd of this or another process. Unmapped when destroyed; the bytes live while anybody
// maps them, whatever becomes of the process that made them.
class SharedMapping {
 public:
  // A new one of ours, writable here, whose size nobody can change.
  static StatusOr<std::unique_ptr<SharedMapping>> Create(const char* name, uint64_t bytes);
  // One of process `pid`. Unavailable if it cannot be opened from here (another host, container or
  // user), InvalidArgument if it is not the file that was meant.
  static StatusOr<std::unique_ptr<SharedMapping>> Open(pid_t pid, const SharedFile& file,
                                                       bool writable);
  // One that this process inherited open, as Create makes them; writable, and as one of ours.
  // InvalidArgument if its size may change.
  static StatusOr<std::unique_ptr<SharedMapping>> Adopt(OwnedFd fd);
  ~SharedMapping();
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;

  std::byte* data() const { return data_; }
  uint64_t size() const { return file_.bytes; }
  // What another process needs to open it; only of one made by Create.
  const SharedFile& file() const { return file_; }

 private:
  SharedMapping(OwnedFd fd, SharedFile file, std::byte* data)
      : fd_(std::move(fd)), file_(file), data_(data) {}

  const OwnedFd fd_;  // kept open by who made it, so that others can open it
  const SharedFile file_;
  std::byte* const data_;
};

// Blocks for tensors. What is freed goes back to the system page by page; the files keep their
// sizes, and the room is given out again. Thread-safe.
class SharedMemory {
 public:
  struct Place {
    SharedFile file;
    uint64_t offset = 0;
  };

  // From now on Allocate has memory to give. Unavailable where the system has no memfds.
  Status Enable();
  bool enabled() const { return enabled_.load(std::memory_order_acquire); }
  // Instead of Enable, before anything is allocated: all memory is of `file`, which may hold what
  // an earlier process wrote. What lies in `taken`, (offset, bytes), stays, as if it had been
  // allocated. Returns the rooms between and behind them that have memory of the earlier process:
  // Free, which may take its time, gives them out again.
  StatusOr<std::vector<std::pair<std::byte*, size_t>>> EnableIn(
      std::unique_ptr<SharedMapping> file, std::vector<std::pair<uint64_t, uint64_t>> taken);

  // `bytes` at a multiple of 64; null if it is off or the system gives no more.
  std::byte* Allocate(size_t bytes);
  // A block of Allocate of as many bytes. Smaller ones than a page are lost until the process ends.
  void Free(std::byte* block, size_t bytes);
  // Where these bytes lie, if they are of Allocate. Without a lock.
  std::optional<Place> Find(const std::byte* data, size_t bytes) const;

 private:
  static constexpr size_t kMaxSegments = 512;
  const SharedMapping* SegmentOf(const std::byte* data) const;
  std::byte* TakeFree(uint64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddFree(std::byte* begin, uint64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EraseFree(std::byte* begin, uint64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  std::atomic<bool> enabled_{false};
  std::array<std::unique_ptr<SharedMapping>, kMaxSegments> segments_;  // up to num_segments_
  std::atomic<size_t> num_segments_{0};
  uint64_t used_ ABSL_GUARDED_BY(mutex_) = 0;   // of the last segment
  uint64_t total_ ABSL_GUARDED_BY(mutex_) = 0;  // bytes of all segments
  // Free room of whole pages: neighbours are one.
  std::map<std::byte*, uint64_t> free_by_place_ ABSL_GUARDED_BY(mutex_);
  std::set<std::pair<uint64_t, std::byte*>> free_by_size_ ABSL_GUARDED_BY(mutex_);
};

// The process's own, off until somebody enables it.
SharedMemory& ProcessSharedMemory();

}  // namespace weft
