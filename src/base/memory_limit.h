// SPDX-License-Identifier: Apache-2.0
// How much memory this process may use.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

// The lowest limit of the control groups that the process is in, of either version; UINT64_MAX
// without one. `root` and `self` are where the system tells: other ones in tests.
uint64_t ControlGroupMemoryLimit(const std::string& root = "/sys/fs/cgroup",
                                 const std::string& self = "/proc/self/cgroup");

// Of the machine, in bytes.
uint64_t MachineMemory();

}  // namespace weft
