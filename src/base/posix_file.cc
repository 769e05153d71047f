// SPDX-License-Identifier: Apache-2.0
#include "base/posix_file.h"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft {
namespace {

class PosixReadable : public ReadableFile {
 public:
  PosixReadable(OwnedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> buffer) const override {
    size_t done = 0;
    while (done < buffer.size()) {
      const ssize_t count = ::pread(fd_.get(), buffer.data() + done, buffer.size() - done,
                                    static_cast<off_t>(offset + done));
      if (count == 0) break;
      if (count < 0) {
        if (errno == EINTR) continue;
        if (errno == ESPIPE) {
          return InvalidArgument("Cannot read '", path_, "': it is a pipe, expected a file");
        }
        return ErrnoStatus(errno, "read", path_);
      }
      done += static_cast<size_t>(count);
    }
    return done;
  }

 private:
  const OwnedFd fd_;
  const std::string path_;
};

class PosixWritable : public WritableFile {
 public:
  PosixWritable(OwnedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  Status Append(absl::string_view data) override {
    if (!fd_.is_open()) return FailedPrecondition("The file is closed: '", path_, "'");
    while (!data.empty()) {
      const ssize_t count = ::write(fd_.get(), data.data(), data.size());
      if (count < 0) {
        if (errno == EINTR) continue;
        return ErrnoStatus(errno, "write", path_);
      }
      data.remove_prefix(static_cast<size_t>(count));
    }
    return absl::OkStatus();
  }

  Status Sync() override {
    if (!fd_.is_open()) return FailedPrecondition("The file is closed: '", path_, "'");
    if (::fsync(fd_.get()) != 0) return ErrnoStatus(errno, "sync", path_);
    return absl::OkStatus();
  }

  Status Close() override {
    if (!fd_.is_open()) return absl::OkStatus();
    if (::close(fd_.Release()) != 0 && errno != EINTR) return ErrnoStatus(errno, "close", path_);
    return absl::OkStatus();
  }

 private:
  OwnedFd fd_;
  const std::string path_;
};

}  // namespace

void OwnedFd::Reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Status ErrnoStatus(int error, absl::string_view verb, absl::string_view path) {
  const std::string message =
      absl::StrCat("Cannot ", verb, " '", path, "': ", std::generic_category().message(error));
  switch (error) {
    case ENOENT:
      return absl::NotFoundError(message);
    case EEXIST:
      return absl::AlreadyExistsError(message);
    case EACCES:
    case EPERM:
    case EROFS:
    case EXDEV:
      return absl::PermissionDeniedError(message);
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(message);
    case ENOTEMPTY:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case EBUSY:
      return absl::FailedPreconditionError(message);
    case ENAMETOOLONG:
    case EINVAL:
      return absl::InvalidArgumentError(message);
    case EIO:
      return absl::DataLossError(message);
    default:
      return absl::UnavailableError(message);
  }
}

std::unique_ptr<ReadableFile> AdoptReadable(OwnedFd fd, const std::string& path) {
  return std::make_unique<PosixReadable>(std::move(fd), path);
}

std::unique_ptr<WritableFile> AdoptWritable(OwnedFd fd, const std::string& path) {
  // A pipe that was opened without waiting for a reader is written to as one that was not.
  const int flags = ::fcntl(fd.get(), F_GETFL);
  if (flags >= 0 && (flags & O_NONBLOCK) != 0) ::fcntl(fd.get(), F_SETFL, flags & ~O_NONBLOCK);
  return std::make_unique<PosixWritable>(std::move(fd), path);
}

StatusOr<std::vector<std::string>> ListDescriptor(OwnedFd fd, const std::string& path) {
  DIR* const stream = ::fdopendir(fd.get());
  if (stream == nullptr) return ErrnoStatus(errno, "list", path);
  (void)fd.Release();  // the stream owns it now
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream)) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int error = errno;
  ::closedir(stream);
  if (error != 0) return ErrnoStatus(error, "list", path);
  std::sort(names.begin(), names.end());
  return names;
}

StatusOr<FileStat> StatDescriptor(int fd, const std::string& path) {
  struct stat found;
  if (::fstat(fd, &found) != 0) return ErrnoStatus(errno, "stat", path);
  FileStat stat;
  stat.size_bytes = static_cast<uint64_t>(found.st_size);
  stat.is_directory = S_ISDIR(found.st_mode);
  stat.modified = absl::TimeFromTimespec(found.st_mtim);
  return stat;
}

}  // namespace weft
