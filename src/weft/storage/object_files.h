// SPDX-License-Identifier: Apache-2.0
// Objects of stores as files: "s3://bucket/key", "gs://bucket/object", "https://host/path".
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/files.h"
#include "base/status.h"
#include "weft/storage/object_store.h"

namespace weft::storage {

// Paths with one of these schemes lead to a store, all others to `local`. Folders of stores are
// names that objects share: they need not be made. A file appears when it is closed; to rename is
// to copy and delete. Thread-safe.
class ObjectFileSystem final : public FileSystem {
 public:
  explicit ObjectFileSystem(std::unique_ptr<FileSystem> local) : local_(std::move(local)) {}

  StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override;
  StatusOr<std::unique_ptr<WritableFile>> OpenWrite(const std::string& path,
                                                    WriteMode mode) override;
  StatusOr<FileStat> Stat(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& path) override;
  Status MakeDirectories(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Delete(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;

 private:
  struct Place {
    ObjectStore* store = nullptr;  // null: a local path
    ObjectName name;
  };
  StatusOr<Place> Find(const std::string& path);

  const std::unique_ptr<FileSystem> local_;
  absl::Mutex mutex_;
  // By scheme, of web servers by their address too; made when first needed.
  std::map<std::string, std::unique_ptr<ObjectStore>> stores_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::storage
