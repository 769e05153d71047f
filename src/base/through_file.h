// SPDX-License-Identifier: Apache-2.0
// A large file on its way to the disk: while the next bytes are gathered, a thread writes the last
// ones past the page cache, whose own copy and late flush cost several times as much.
#pragma once

#include <memory>
#include <string>

#include "base/files.h"
#include "base/posix_file.h"

namespace weft {

// Writes `fd`, a file of no bytes, from its start. Where the file system does not write past its
// cache (tmpfs, some network ones), through the cache. Errors of the disk come with a later call,
// at the latest with Sync or Close, and with each one after that. What was not closed is torn.
std::unique_ptr<WritableFile> AdoptThroughFile(OwnedFd fd, const std::string& path);

}  // namespace weft
