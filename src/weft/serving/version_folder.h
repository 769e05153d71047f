// SPDX-License-Identifier: Apache-2.0
// The folder of a model: which versions are in it, and whether one of them is whole.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

#include "base/files.h"
#include "base/status.h"
#include "proto/serving/config.pb.h"

namespace weft::serving {

using VersionPolicy = tensorflow::serving::FileSystemStoragePathSourceConfig::ServableVersionPolicy;

// The versions that `policy` wants of those that there are, with their folders: sub-folders whose
// names are numbers. Of two names of one number ("7", "007") the last counts. NotFound or what the
// file system says where `base_path` cannot be listed.
StatusOr<std::map<int64_t, std::string>> WantedVersions(FileSystem& files,
                                                        const std::string& base_path,
                                                        const VersionPolicy& policy);

// What a version's folder holds now: two that are equal were taken of a folder in which nothing
// was written in between.
struct FolderState {
  std::string fingerprint;  // names, sizes and times
  absl::Time newest;        // of the last change
  bool has_graph = false;   // saved_model.pb or .pbtxt
  bool operator==(const FolderState&) const = default;
};
StatusOr<FolderState> LookAt(FileSystem& files, const std::string& folder);

}  // namespace weft::serving
