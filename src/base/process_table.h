// SPDX-License-Identifier: Apache-2.0
// The processes of this machine, as far as we may see them.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include <sys/types.h>

#include "absl/time/time.h"

namespace weft {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t group = 0;
  int64_t resident_bytes = 0;  // with pages that it shares with others
  absl::Duration cpu_time;     // with that of its children that were reaped
};

// Reads /proc: some 10 us for each process.
std::vector<ProcessEntry> ReadProcessTable();

// All that descends from `root`, without what descends from `spare` (0: no one).
std::set<pid_t> Descendants(const std::vector<ProcessEntry>& table, pid_t root, pid_t spare = 0);

// The memory that only the end of these processes would give back: what each holds and shares with
// no file, and its part of what it shares with other processes.
int64_t HeldMemory(const std::set<pid_t>& pids);

}  // namespace weft
