// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/host_path.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include <sys/stat.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "base/files.h"
#include "base/posix_file.h"
#include "platform/object/fields.h"

namespace weft::platform {
namespace {

struct PathType {
  const char* name;
  mode_t kind;
  const char* what;
  bool is_made;
};
constexpr PathType kTypes[] = {
    {"Directory", S_IFDIR, "a directory", false},
    {"DirectoryOrCreate", S_IFDIR, "a directory", true},
    {"File", S_IFREG, "a file", false},
    {"FileOrCreate", S_IFREG, "a file", true},
    {"Socket", S_IFSOCK, "a socket", false},
    {"CharDevice", S_IFCHR, "a character device", false},
    {"BlockDevice", S_IFBLK, "a block device", false},
};

Status Make(const PathType& type, const std::string& path) {
  RealFileSystem files;
  return type.kind == S_IFDIR ? files.MakeDirectories(path) : WriteFile(files, path, "");
}

}  // namespace

StatusOr<HostPath> CheckHostPath(const Json& host_path) {
  const std::string path = StringField(host_path, {"path"});
  const std::string asked = StringField(host_path, {"type"});
  if (!absl::StartsWith(path, "/"))
    return InvalidArgument("hostPath '", path,
                           "' is no absolute path: write one that begins with /");
  const PathType* type = nullptr;
  for (const PathType& known : kTypes)
    if (asked == known.name) type = &known;
  if (type == nullptr && !asked.empty())
    return InvalidArgument("hostPath type '", asked,
                           "' is not known: Directory, DirectoryOrCreate, "
                           "File, FileOrCreate, Socket, CharDevice and BlockDevice are");
  struct stat info = {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return ErrnoStatus(errno, "use hostPath", path);
    if (type == nullptr || type->is_made) {
      WEFT_RETURN_IF_ERROR(Make(type == nullptr ? kTypes[0] : *type, path));
      return HostPath{path, type == nullptr};
    }
    return NotFound("hostPath '", path, "' is not there on this machine: make it, or write ",
                    type->kind == S_IFDIR ? "type: DirectoryOrCreate" : "type: FileOrCreate");
  }
  if (type != nullptr && (info.st_mode & S_IFMT) != type->kind)
    return FailedPrecondition("hostPath type check failed: ", path, " is not ", type->what);
  return HostPath{path};
}

StatusOr<std::string> ResolveSubPath(const std::string& volume, const std::string& path,
                                     bool may_make) {
  const std::vector<std::string> parts = absl::StrSplit(path, '/', absl::SkipEmpty());
  if (absl::StartsWith(path, "/") || std::find(parts.begin(), parts.end(), "..") != parts.end())
    return InvalidArgument("subPath '", path,
                           "' leads out of the volume: a path below it is allowed, "
                           "without ..");
  if (may_make) {
    // The kernel itself keeps links from leading out.
    WEFT_ASSIGN_OR_RETURN(const auto files, RootedFileSystem::Create(volume));
    if (!files->Stat(absl::StrJoin(parts, "/")).ok())
      WEFT_RETURN_IF_ERROR(files->MakeDirectories(absl::StrJoin(parts, "/")));
  }
  char root[PATH_MAX];
  char real[PATH_MAX];
  const std::string whole = JoinPath(volume, absl::StrJoin(parts, "/"));
  if (::realpath(volume.c_str(), root) == nullptr) return ErrnoStatus(errno, "use", volume);
  if (::realpath(whole.c_str(), real) == nullptr)
    return NotFound("subPath '", path, "' is not in the volume");
  if (std::string(real) != root && !absl::StartsWith(real, absl::StrCat(root, "/")))
    return FailedPrecondition("subPath '", path, "' is a link that leads out of the volume");
  return std::string(real);
}

bool IsFile(const std::string& path) {
  std::error_code error;
  return !std::filesystem::is_directory(path, error);
}

}  // namespace weft::platform
