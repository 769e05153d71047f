// SPDX-License-Identifier: Apache-2.0
// Small questions to a running cluster.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/kernel/device.h"

namespace weft::cluster {

// Every device of the cluster that the task at "host:port" (or "grpc://host:port") belongs to, its
// own first. Unavailable naming the address if nobody answers in time.
StatusOr<std::vector<DeviceAttributes>> ListClusterDevices(const std::string& address,
                                                           absl::Duration timeout);

}  // namespace weft::cluster
