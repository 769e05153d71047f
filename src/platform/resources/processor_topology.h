// SPDX-License-Identifier: Apache-2.0
// Which processors of a machine are near each other.
#pragma once

#include <map>

namespace weft::platform {

struct ProcessorPlace {
  int numa_node = 0;
  int cache = 0;  // the last one, by a number of its own
  int core = 0;   // the same for threads of one core
};

// By processor. Of one that is not there nothing is known: it is near to all.
using ProcessorTopology = std::map<int, ProcessorPlace>;

}  // namespace weft::platform
