// SPDX-License-Identifier: Apache-2.0
// Whether this machine backs large memory by pages of 2 MB (transparent huge pages of Linux):
// random reads of large tables are slower without.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

struct HugePages {
  bool for_own = false;     // memory of one process that asks by madvise
  bool for_shared = false;  // memory that processes share, which asks so too
};

// Of this kernel; neither where it does not tell. `folder` is where it tells: another in tests.
HugePages HugePagesHere(const std::string& folder = "/sys/kernel/mm/transparent_hugepage");

// A sentence for a server's log, with the command that changes what is missing.
std::string Describe(const HugePages& pages);

// Asks for them for memory that lies at a multiple of 2 MB. Refusals cost nothing.
void AskForHugePages(void* data, uint64_t bytes);

}  // namespace weft
