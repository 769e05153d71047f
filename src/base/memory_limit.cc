// SPDX-License-Identifier: Apache-2.0
#include "base/memory_limit.h"

#include <algorithm>
#include <fstream>

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace weft {
namespace {

// "max" and what cannot be read are no limit.
uint64_t LimitIn(const std::string& file) {
  std::ifstream in(file);
  std::string word;
  uint64_t bytes = 0;
  return in >> word && absl::SimpleAtoi(word, &bytes) ? bytes : UINT64_MAX;
}

// Of the group at `path` below `folder` and of those that it lies in.
uint64_t LowestUpwards(const std::string& folder, std::string path, const char* file) {
  uint64_t lowest = LimitIn(absl::StrCat(folder, "/", file));
  while (!path.empty() && path != "/") {
    lowest = std::min(lowest, LimitIn(absl::StrCat(folder, path, "/", file)));
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  return lowest;
}

}  // namespace

uint64_t ControlGroupMemoryLimit(const std::string& root, const std::string& self) {
  uint64_t lowest = UINT64_MAX;
  std::ifstream groups(self);
  std::string line;
  // "0::/path" is version 2, "9:memory:/path" version 1.
  while (std::getline(groups, line)) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() < 3) continue;
    if (parts[1].empty()) {
      lowest = std::min(lowest, LowestUpwards(root, parts[2], "memory.max"));
    } else if (absl::StrContains(absl::StrCat(",", parts[1], ","), ",memory,")) {
      lowest = std::min(
          lowest, LowestUpwards(absl::StrCat(root, "/memory"), parts[2], "memory.limit_in_bytes"));
    }
  }
  return lowest;
}

uint64_t MachineMemory() {
  const long pages = sysconf(_SC_PHYS_PAGES), bytes = sysconf(_SC_PAGESIZE);
  if (pages <= 0 || bytes <= 0) return UINT64_MAX;
  return static_cast<uint64_t>(pages) * static_cast<uint64_t>(bytes);
}

}  // namespace weft
