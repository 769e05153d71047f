// SPDX-License-Identifier: Apache-2.0
// Which adapters for RDMA (InfiniBand, RoCE) this machine could send through now.
#pragma once

#include <string>
#include <vector>

namespace weft::transport {

// Names as in /sys/class/infiniband, in order, of those with an active port and a device file here:
// a container sees all adapters of its machine there, and has the files of its own. `root` is for
// tests.
std::vector<std::string> ActiveRdmaAdapters(const std::string& root = "");

}  // namespace weft::transport
