// SPDX-License-Identifier: Apache-2.0
// A disk that fails when told to, for tests of everything that writes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/files.h"

namespace weft {

// Passes calls on to `base`, which it borrows, and counts them: each call of FileSystem, Append,
// Sync, Close and ReadAt is one. Thread-safe.
class FaultyFileSystem : public FileSystem {
 public:
  explicit FaultyFileSystem(FileSystem* base) : base_(base) {}

  // The call with number `nth` from now (1 is the next one), and with `sticky` all after it, fail.
  void FailCall(int64_t nth, Status error, bool sticky = false);
  // Appends beyond `bytes` in all fail as a full disk does: what fits is written.
  void LimitBytes(int64_t bytes);
  int64_t calls() const;

  StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override;
  StatusOr<std::unique_ptr<WritableFile>> OpenWrite(const std::string& path,
                                                    WriteMode mode) override;
  StatusOr<FileStat> Stat(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& path) override;
  Status MakeDirectories(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Delete(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;

  // For its own files: counts one call, and takes what fits of `size` bytes.
  Status Count();
  size_t TakeBytes(size_t size);

 private:
  FileSystem* const base_;
  mutable absl::Mutex mutex_;
  int64_t calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t failing_call_ ABSL_GUARDED_BY(mutex_) = -1;
  bool sticky_ ABSL_GUARDED_BY(mutex_) = false;
  Status error_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_left_ ABSL_GUARDED_BY(mutex_) = INT64_MAX;
};

}  // namespace weft
