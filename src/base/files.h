// SPDX-License-Identifier: Apache-2.0
// Disk behind an interface: real, confined to a root, or faulty (faulty_files.h).
// Errors name the path and what the system said: NotFound, AlreadyExists, PermissionDenied,
// ResourceExhausted (disk or quota full), else Unavailable or Internal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

#include "base/status.h"

namespace weft {

// Thread-safe.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  // Fills `buffer` from byte `offset`; returns how many bytes, fewer only at the end of the file.
  virtual StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> buffer) const = 0;
};

// Not thread-safe. Unbuffered. Close reports what the destructor cannot.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Status Append(absl::string_view data) = 0;
  virtual Status Sync() = 0;
  virtual Status Close() = 0;
};

struct FileStat {
  uint64_t size_bytes = 0;
  bool is_directory = false;
  absl::Time modified;
};

enum class WriteMode {
  kTruncate,
  kAppend,
  kThrough,  // as kTruncate, for large files that are synced: past the page cache where that is
};

// Thread-safe.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) = 0;
  // Makes the file if it is not there; its folder must be.
  virtual StatusOr<std::unique_ptr<WritableFile>> OpenWrite(const std::string& path,
                                                            WriteMode mode) = 0;
  virtual StatusOr<FileStat> Stat(const std::string& path) = 0;
  // Names without "." and "..", sorted.
  virtual StatusOr<std::vector<std::string>> List(const std::string& path) = 0;
  virtual Status MakeDirectories(const std::string& path) = 0;
  // Replaces `to` in one step.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // A file, a link or an empty directory.
  virtual Status Delete(const std::string& path) = 0;
  // Makes the names in a directory (new, renamed, deleted) survive a crash.
  virtual Status SyncDirectory(const std::string& path) = 0;
};

// Every path as the process sees it; relative ones start at the working directory.
class RealFileSystem : public FileSystem {
 public:
  StatusOr<std::unique_ptr<ReadableFile>> OpenRead(const std::string& path) override;
  StatusOr<std::unique_ptr<WritableFile>> OpenWrite(const std::string& path,
                                                    WriteMode mode) override;
  StatusOr<FileStat> Stat(const std::string& path) override;
  StatusOr<std::vector<std::string>> List(const std::string& path) override;
  Status MakeDirectories(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Delete(const std::string& path) override;
  Status SyncDirectory(const std::string& path) override;
};

// Only what lies under `root`; the kernel itself refuses "..", absolute paths and links that lead
// out (PermissionDenied). Relative paths start at the root; absolute ones must name a place in it.
class RootedFileSystem : public FileSystem {
 public:
  // With `walk`, as on kernels without openat2: every part is opened by itself and links are
  // refused.
  static StatusOr<std::unique_ptr<RootedFileSystem>> Create(const std::string& root,
                                                            bool walk = false);
  ~RootedFileSystem() override;
  RootedFileSystem(const RootedFileSystem&) = delete;
  RootedFileSystem& operator=(const RootedFileSystem&) = delete;

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
  class Entry;
  RootedFileSystem(std::string root, std::string real_root, int fd, bool walk);
  // `path` relative to the root, "." for the root itself.
  StatusOr<std::string> Relative(const std::string& path) const;
  StatusOr<int> Open(const std::string& path, int flags) const;
  StatusOr<int> Walk(const std::string& path, const std::string& relative, int flags) const;
  StatusOr<Entry> OpenParent(const std::string& path) const;

  const std::string root_;
  const std::string real_root_;
  const int fd_;
  const bool walk_;
};

// The whole of a file, or ResourceExhausted when it is longer than `max_bytes`.
StatusOr<std::string> ReadFile(FileSystem& files, const std::string& path,
                               uint64_t max_bytes = uint64_t{1} << 30);
Status WriteFile(FileSystem& files, const std::string& path, absl::string_view data);
// Readers see the old file or all of the new one, also after a crash: temporary file beside it,
// fsync, rename, fsync of the folder. The temporary file is removed on error.
Status WriteFileAtomically(FileSystem& files, const std::string& path, absl::string_view data);

// "a/b" + "c" -> "a/b/c"; an absolute second part wins; the folder of "c" is ".".
std::string JoinPath(absl::string_view folder, absl::string_view name);
std::string ParentPath(absl::string_view path);

}  // namespace weft
