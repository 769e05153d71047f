// SPDX-License-Identifier: Apache-2.0
#include "base/files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/match.h"

#include "base/posix_file.h"
#include "base/through_file.h"

namespace weft {
namespace {

// Not to wait for the other end of a pipe.
constexpr int kReadFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

int WriteFlags(WriteMode mode) {
  return O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK |
         (mode == WriteMode::kAppend ? O_APPEND : O_TRUNC);
}

}  // namespace

StatusOr<std::unique_ptr<ReadableFile>> RealFileSystem::OpenRead(const std::string& path) {
  OwnedFd fd(::open(path.c_str(), kReadFlags));
  if (!fd.is_open()) return ErrnoStatus(errno, "open", path);
  return AdoptReadable(std::move(fd), path);
}

StatusOr<std::unique_ptr<WritableFile>> RealFileSystem::OpenWrite(const std::string& path,
                                                                  WriteMode mode) {
  OwnedFd fd(::open(path.c_str(), WriteFlags(mode), 0666));
  if (!fd.is_open()) return ErrnoStatus(errno, "create", path);
  return mode == WriteMode::kThrough ? AdoptThroughFile(std::move(fd), path)
                                     : AdoptWritable(std::move(fd), path);
}

StatusOr<FileStat> RealFileSystem::Stat(const std::string& path) {
  OwnedFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd.is_open()) return ErrnoStatus(errno, "stat", path);
  return StatDescriptor(fd.get(), path);
}

StatusOr<std::vector<std::string>> RealFileSystem::List(const std::string& path) {
  OwnedFd fd(::open(path.c_str(), kReadFlags | O_DIRECTORY));
  if (!fd.is_open()) return ErrnoStatus(errno, "list", path);
  return ListDescriptor(std::move(fd), path);
}

Status RealFileSystem::MakeDirectories(const std::string& path) {
  for (size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string part = path.substr(0, end);
    if (part.empty() || ::mkdir(part.c_str(), 0777) == 0) continue;
    const int error = errno;
    struct stat found;
    if (::stat(part.c_str(), &found) == 0 && S_ISDIR(found.st_mode)) continue;
    return ErrnoStatus(error == EEXIST ? ENOTDIR : error, "make the folder", part);
  }
  return absl::OkStatus();
}

Status RealFileSystem::Rename(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    return ErrnoStatus(errno, "rename", absl::StrCat(from, "' to '", to));
  }
  return absl::OkStatus();
}

Status RealFileSystem::Delete(const std::string& path) {
  if (std::remove(path.c_str()) != 0) return ErrnoStatus(errno, "delete", path);
  return absl::OkStatus();
}

Status RealFileSystem::SyncDirectory(const std::string& path) {
  OwnedFd fd(::open(path.c_str(), kReadFlags | O_DIRECTORY));
  if (!fd.is_open()) return ErrnoStatus(errno, "open", path);
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return ErrnoStatus(errno, "sync", path);
  return absl::OkStatus();
}

StatusOr<std::string> ReadFile(FileSystem& files, const std::string& path, uint64_t max_bytes) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, files.OpenRead(path));
  WEFT_ASSIGN_OR_RETURN(const FileStat stat, files.Stat(path));
  if (stat.is_directory) return FailedPrecondition("Cannot read '", path, "': it is a directory");
  std::string data;
  // One byte more than announced, so that a file that grew goes on; files of /proc announce 0 and
  // want to be read in one go.
  size_t step =
      std::max<size_t>(static_cast<size_t>(std::min(stat.size_bytes, max_bytes)) + 1, 4096);
  while (true) {
    const size_t old_size = data.size();
    data.resize(old_size + step);
    WEFT_ASSIGN_OR_RETURN(const size_t count,
                          file->ReadAt(old_size, absl::MakeSpan(data).subspan(old_size)));
    data.resize(old_size + count);
    if (data.size() > max_bytes) {
      return ResourceExhausted("The file is longer than ", max_bytes, " bytes: '", path, "'");
    }
    if (count < step) return data;
    step = 1 << 16;
  }
}

Status WriteFile(FileSystem& files, const std::string& path, absl::string_view data) {
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                        files.OpenWrite(path, WriteMode::kTruncate));
  WEFT_RETURN_IF_ERROR(file->Append(data));
  return file->Close();
}

Status WriteFileAtomically(FileSystem& files, const std::string& path, absl::string_view data) {
  static std::atomic<uint64_t> sequence{0};
  const std::string temporary =
      absl::StrCat(path, ".tmp-", getpid(), "-", sequence.fetch_add(1, std::memory_order_relaxed));
  const auto write = [&]() -> Status {
    WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file,
                          files.OpenWrite(temporary, WriteMode::kTruncate));
    WEFT_RETURN_IF_ERROR(file->Append(data));
    WEFT_RETURN_IF_ERROR(file->Sync());
    WEFT_RETURN_IF_ERROR(file->Close());
    return files.Rename(temporary, path);
  };
  const Status status = write();
  if (!status.ok()) {
    files.Delete(temporary).IgnoreError();
    return status;
  }
  return files.SyncDirectory(ParentPath(path));
}

std::string JoinPath(absl::string_view folder, absl::string_view name) {
  if (folder.empty() || absl::StartsWith(name, "/")) return std::string(name);
  return absl::StrCat(folder, absl::EndsWith(folder, "/") ? "" : "/", name);
}

std::string ParentPath(absl::string_view path) {
  const size_t slash = path.rfind('/');
  if (slash == absl::string_view::npos) return ".";
  return std::string(path.substr(0, std::max<size_t>(slash, 1)));
}

}  // namespace weft
