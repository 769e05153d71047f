// SPDX-License-Identifier: Apache-2.0
// How a container's volumes get to their places without a trace on the machine.
#pragma once

#include <string>
#include <vector>

#include "base/mount_namespace.h"
#include "base/status.h"

namespace weft::platform {

// What a container sees at `target`. Both paths are absolute.
struct Placement {
  std::string source;
  std::string target;
  bool is_read_only = false;
  bool is_file = false;
  bool is_in_memory = false;  // the source is there only in the pod's namespace
  bool is_ours = false;       // its files are written by us: places for others are not made in it
};

// The steps to a namespace whose root is `root`, an empty folder. Folders in which places are
// missing are shown as new ones in memory that hold all that the real ones hold, and the places;
// what lies in another placement is made there, as a container runtime does. The error says which
// path is in the way.
StatusOr<std::vector<MountStep>> PlanMounts(std::vector<Placement> placements,
                                            const std::string& root);

}  // namespace weft::platform
