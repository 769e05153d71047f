// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <climits>
#include <utility>

#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "base/files.h"
#include "base/posix_file.h"
#include "base/through_file.h"

namespace weft {
namespace {

Status LeavesRoot(const std::string& path, const std::string& root) {
  return PermissionDenied("The path leads out of the folder this process may use: '", path,
                          "' is not under '", root, "'");
}

int OpenBeneath(int root, const char* path, int flags) {
  open_how how = {};
  how.flags = static_cast<uint64_t>(flags | O_CLOEXEC);
  how.mode = (flags & O_CREAT) ? 0666 : 0;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  int fd = -1;
  do {
    fd = static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof(how)));
  } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
  return fd;
}

// Some container runtimes answer EPERM for calls that they do not know.
bool HasOpenat2(int root) {
  OwnedFd fd(OpenBeneath(root, ".", O_PATH));
  return fd.is_open();
}

}  // namespace

// The open folder of a path and the last part of its name.
class RootedFileSystem::Entry {
 public:
  OwnedFd folder;
  std::string name;
};

RootedFileSystem::RootedFileSystem(std::string root, std::string real_root, int fd, bool walk)
    : root_(std::move(root)), real_root_(std::move(real_root)), fd_(fd), walk_(walk) {}

RootedFileSystem::~RootedFileSystem() { ::close(fd_); }

StatusOr<std::unique_ptr<RootedFileSystem>> RootedFileSystem::Create(const std::string& root,
                                                                     bool walk) {
  OwnedFd fd(::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.is_open()) return ErrnoStatus(errno, "use as root", root);
  char resolved[PATH_MAX];
  if (::realpath(root.c_str(), resolved) == nullptr) {
    return ErrnoStatus(errno, "use as root", root);
  }
  walk = walk || !HasOpenat2(fd.get());
  return std::unique_ptr<RootedFileSystem>(
      new RootedFileSystem(root, resolved, fd.Release(), walk));
}

StatusOr<std::string> RootedFileSystem::Relative(const std::string& path) const {
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("The path holds a NUL character: '", path.c_str(), "'");
  }
  absl::string_view rest = path;
  if (absl::StartsWith(rest, "/")) {
    bool inside = false;
    for (absl::string_view root : {absl::string_view(root_), absl::string_view(real_root_)}) {
      while (absl::EndsWith(root, "/")) root.remove_suffix(1);
      if (!root.empty() && !absl::StartsWith(root, "/")) continue;
      if (!absl::StartsWith(rest, root)) continue;
      if (rest.size() > root.size() && rest[root.size()] != '/') continue;
      rest.remove_prefix(root.size());
      inside = true;
      break;
    }
    if (!inside) return LeavesRoot(path, real_root_);
  }
  std::vector<absl::string_view> parts;
  for (const absl::string_view part : absl::StrSplit(rest, '/', absl::SkipEmpty())) {
    // ".." would be safe beneath the root, but the names before it may be links: no one needs it.
    if (part == "..") return LeavesRoot(path, real_root_);
    if (part != ".") parts.push_back(part);
  }
  return parts.empty() ? std::string(".") : absl::StrJoin(parts, "/");
}

StatusOr<int> RootedFileSystem::Walk(const std::string& path, const std::string& relative,
                                     int flags) const {
  OwnedFd folder(::fcntl(fd_, F_DUPFD_CLOEXEC, 0));
  const std::vector<std::string> parts = absl::StrSplit(relative, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_last = i + 1 == parts.size();
    const int part_flags = is_last ? flags : O_PATH | O_DIRECTORY;
    OwnedFd next(
        ::openat(folder.get(), parts[i].c_str(), part_flags | O_NOFOLLOW | O_CLOEXEC, 0666));
    struct stat found;
    const bool is_link = next.is_open() ? ::fstat(next.get(), &found) == 0 && S_ISLNK(found.st_mode)
                                        : ::fstatat(folder.get(), parts[i].c_str(), &found,
                                                    AT_SYMLINK_NOFOLLOW) == 0 &&
                                              S_ISLNK(found.st_mode);
    if (is_link) return LeavesRoot(path, real_root_);
    if (!next.is_open()) return ErrnoStatus(errno, "open", path);
    folder = std::move(next);
  }
  return folder.Release();
}

StatusOr<int> RootedFileSystem::Open(const std::string& path, int flags) const {
  WEFT_ASSIGN_OR_RETURN(const std::string relative, Relative(path));
  if (walk_) return Walk(path, relative, flags);
  const int fd = OpenBeneath(fd_, relative.c_str(), flags);
  if (fd < 0 && errno == EXDEV) return LeavesRoot(path, real_root_);
  if (fd < 0) return ErrnoStatus(errno, "open", path);
  return fd;
}

StatusOr<RootedFileSystem::Entry> RootedFileSystem::OpenParent(const std::string& path) const {
  WEFT_ASSIGN_OR_RETURN(const std::string relative, Relative(path));
  if (relative == ".") return InvalidArgument("The path names the root itself: '", path, "'");
  Entry entry;
  WEFT_ASSIGN_OR_RETURN(const int folder, Open(ParentPath(relative), O_PATH | O_DIRECTORY));
  entry.folder.Reset(folder);
  entry.name = relative.substr(relative.rfind('/') + 1);
  return entry;
}

StatusOr<std::unique_ptr<ReadableFile>> RootedFileSystem::OpenRead(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const int fd, Open(path, O_RDONLY | O_NONBLOCK));
  return AdoptReadable(OwnedFd(fd), path);
}

StatusOr<std::unique_ptr<WritableFile>> RootedFileSystem::OpenWrite(const std::string& path,
                                                                    WriteMode mode) {
  WEFT_ASSIGN_OR_RETURN(const int opened,
                        Open(path, O_WRONLY | O_CREAT | O_NONBLOCK |
                                       (mode == WriteMode::kAppend ? O_APPEND : O_TRUNC)));
  OwnedFd fd(opened);
  return mode == WriteMode::kThrough ? AdoptThroughFile(std::move(fd), path)
                                     : AdoptWritable(std::move(fd), path);
}

StatusOr<FileStat> RootedFileSystem::Stat(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const int fd, Open(path, O_PATH));
  const OwnedFd owned(fd);
  return StatDescriptor(owned.get(), path);
}

StatusOr<std::vector<std::string>> RootedFileSystem::List(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const int fd, Open(path, O_RDONLY | O_DIRECTORY));
  return ListDescriptor(OwnedFd(fd), path);
}

Status RootedFileSystem::MakeDirectories(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string relative, Relative(path));
  if (relative == ".") return absl::OkStatus();
  for (size_t end = 0; end != std::string::npos;) {
    end = relative.find('/', end + 1);
    const std::string part = relative.substr(0, end);
    WEFT_ASSIGN_OR_RETURN(const Entry entry, OpenParent(part));
    if (::mkdirat(entry.folder.get(), entry.name.c_str(), 0777) == 0) continue;
    if (errno != EEXIST) return ErrnoStatus(errno, "make the folder", path);
    WEFT_ASSIGN_OR_RETURN(const FileStat stat, Stat(part));
    if (!stat.is_directory) return ErrnoStatus(ENOTDIR, "make the folder", path);
  }
  return absl::OkStatus();
}

Status RootedFileSystem::Rename(const std::string& from, const std::string& to) {
  WEFT_ASSIGN_OR_RETURN(const Entry old_entry, OpenParent(from));
  WEFT_ASSIGN_OR_RETURN(const Entry new_entry, OpenParent(to));
  if (::renameat(old_entry.folder.get(), old_entry.name.c_str(), new_entry.folder.get(),
                 new_entry.name.c_str()) != 0) {
    return ErrnoStatus(errno, "rename", absl::StrCat(from, "' to '", to));
  }
  return absl::OkStatus();
}

Status RootedFileSystem::Delete(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const Entry entry, OpenParent(path));
  if (::unlinkat(entry.folder.get(), entry.name.c_str(), 0) == 0) return absl::OkStatus();
  if (errno == EISDIR || errno == EPERM) {
    if (::unlinkat(entry.folder.get(), entry.name.c_str(), AT_REMOVEDIR) == 0) {
      return absl::OkStatus();
    }
  }
  return ErrnoStatus(errno, "delete", path);
}

Status RootedFileSystem::SyncDirectory(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const int fd, Open(path, O_RDONLY | O_DIRECTORY));
  const OwnedFd owned(fd);
  if (::fsync(owned.get()) != 0 && errno != EINVAL) return ErrnoStatus(errno, "sync", path);
  return absl::OkStatus();
}

}  // namespace weft
