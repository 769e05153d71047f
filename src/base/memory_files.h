// SPDX-License-Identifier: Apache-2.0
// A disk in memory, for tests, fuzzers and simulations: fast, and it can lose power.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/files.h"

namespace weft {

// Paths are plain names with "/" between; the folders "", "." and "/" are always there.
// Thread-safe.
class MemoryFileSystem : public FileSystem {
 public:
  MemoryFileSystem();
  ~MemoryFileSystem() override;

  // What a real disk may do at its worst when the power fails: bytes that no Sync covered and names
  // that no SyncDirectory covered are gone. Open files must not be used any more.
  void LosePower();

  StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override;
  StatusOr<std::unique_ptr<WritableFile>> OpenWrite(const std::string& path,
                                                    WriteMode mode) override;
  StatusOr<FileStat> Stat(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& path) override;
  Status MakeDirectories(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Delete(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;

  struct File;  // for its own files: bytes behind a name

 private:
  using Names = std::map<std::string, std::shared_ptr<File>>;  // null: a folder
  StatusOr<std::shared_ptr<File>> Find(const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  Names names_ ABSL_GUARDED_BY(mutex_);
  Names durable_names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
