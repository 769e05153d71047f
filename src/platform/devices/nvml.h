// SPDX-License-Identifier: Apache-2.0
// The GPUs that NVIDIA's driver tells of, by its library, which is loaded when asked for.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "platform/resources/node_description.h"

namespace weft::platform {

struct DriverGpu {
  Gpu gpu;                  // without its NUMA node, which the kernel tells
  std::string pci_address;  // "0000:17:00.0", as in sysfs
  int minor = -1;           // of /dev/nvidia<minor>; -1: not known
};

// By index. One that is lost is there, and not healthy. NotFound: there is no such library, as on
// most machines. FailedPrecondition: it is there, and its driver does not answer. "" is the
// library's usual name.
StatusOr<std::vector<DriverGpu>> ReadDriverGpus(const std::string& library = "");

}  // namespace weft::platform
