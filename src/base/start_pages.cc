// SPDX-License-Identifier: Apache-2.0
#include "base/start_pages.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include <sys/mman.h>

namespace weft {
namespace {

// A line of /proc/self/smaps that begins a mapping, in proc(5)'s words.
struct Mapping {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  uint64_t inode = 0;  // 0: not of a file
  bool is_read_only = false;
};

bool ParseMapping(const std::string& line, Mapping* mapping) {
  char permissions[5] = "";
  if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s %*x %*x:%*x %" SCNu64,
                  &mapping->begin, &mapping->end, permissions, &mapping->inode) != 4) {
    return false;
  }
  mapping->is_read_only = permissions[1] == '-' && permissions[3] == 'p';
  return true;
}

}  // namespace

void ReleaseStartPages() {
  std::ifstream file("/proc/self/smaps");
  Mapping mapping;
  for (std::string line; std::getline(file, line);) {
    uint64_t kilobytes = 0;
    if (std::sscanf(line.c_str(), "Anonymous: %" SCNu64, &kilobytes) != 1) {
      ParseMapping(line, &mapping);
      continue;
    }
    // What was written once, such as the loader's relocations, stands in no file.
    if (kilobytes > 0 || mapping.inode == 0 || !mapping.is_read_only) continue;
    ::madvise(reinterpret_cast<void*>(mapping.begin), mapping.end - mapping.begin, MADV_DONTNEED);
  }
}

}  // namespace weft
