// SPDX-License-Identifier: Apache-2.0
#include "weft/serving/version_folder.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"

namespace weft::serving {
namespace {

constexpr int kMostFiles = 100'000;
constexpr int kMostDepth = 8;

Status AddFolder(FileSystem& files, const std::string& folder, int depth, int* count,
                 FolderState* state) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(folder));
  for (const std::string& name : names) {
    if (++*count > kMostFiles)
      return ResourceExhausted("There are over ", kMostFiles, " files in ", folder);
    const std::string path = JoinPath(folder, name);
    WEFT_ASSIGN_OR_RETURN(const FileStat stat, files.Stat(path));
    absl::StrAppend(&state->fingerprint, path, " ", stat.size_bytes, " ",
                    absl::ToUnixNanos(stat.modified), "\n");
    state->newest = std::max(state->newest, stat.modified);
    if (depth == 0 && (name == "saved_model.pb" || name == "saved_model.pbtxt"))
      state->has_graph = true;
    if (stat.is_directory && depth < kMostDepth)
      WEFT_RETURN_IF_ERROR(AddFolder(files, path, depth + 1, count, state));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::map<int64_t, std::string>> WantedVersions(FileSystem& files,
                                                        const std::string& base_path,
                                                        const VersionPolicy& policy) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(base_path));
  std::map<int64_t, std::string> all;
  for (const std::string& name : names) {
    int64_t version = 0;
    if (absl::SimpleAtoi(name, &version) && version >= 0) all[version] = JoinPath(base_path, name);
  }
  if (policy.has_all()) return all;
  std::map<int64_t, std::string> wanted;
  if (policy.has_specific()) {
    for (const int64_t version : policy.specific().versions()) {
      const auto found = all.find(version);
      if (found != all.end()) wanted.insert(*found);
    }
    return wanted;
  }
  const size_t count = std::max<size_t>(policy.latest().num_versions(), 1);
  while (all.size() > count) all.erase(all.begin());
  return all;
}

StatusOr<FolderState> LookAt(FileSystem& files, const std::string& folder) {
  FolderState state;
  state.newest = absl::InfinitePast();
  int count = 0;
  WEFT_RETURN_IF_ERROR(AddFolder(files, folder, 0, &count, &state));
  return state;
}

}  // namespace weft::serving
