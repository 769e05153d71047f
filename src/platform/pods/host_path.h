// SPDX-License-Identifier: Apache-2.0
// Folders and files of this machine as volumes.
#pragma once

#include <string>

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// Where a `hostPath` is, checked, and made where its type says so. One without a type that is not
// there becomes an empty folder, as with the runtimes of clusters. FailedPrecondition says what is
// there instead of what the type asks for, and what to write.
struct HostPath {
  std::string path;
  bool was_unasked = false;  // made now, though no type says so
};
StatusOr<HostPath> CheckHostPath(const Json& host_path);

// A subPath below `volume`: made as a folder where it is missing and `may_make`. FailedPrecondition
// when it leads out of the volume.
StatusOr<std::string> ResolveSubPath(const std::string& volume, const std::string& path,
                                     bool may_make);

bool IsFile(const std::string& path);

}  // namespace weft::platform
