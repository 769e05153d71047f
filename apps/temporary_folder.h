// SPDX-License-Identifier: Apache-2.0
// A folder that lives as long as a command.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "base/files.h"

namespace weft::apps {

// Gone with its owner, and all that is in it.
class TemporaryFolder {
 public:
  // Below TMPDIR, by a name that begins so. Its path is empty if it could not be made.
  explicit TemporaryFolder(const std::string& name) {
    const char* const base = std::getenv("TMPDIR");
    path_ = JoinPath(base == nullptr ? "/tmp" : base, name + "-XXXXXX");
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace weft::apps
