// SPDX-License-Identifier: Apache-2.0
// What is asked of a running cluster besides steps.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/client/session_options.h"
#include "weft/kernel/device.h"

namespace weft::client {

// Every device of the cluster that the task at "host:port" (or "grpc://host:port") belongs to, its
// own first. Unavailable naming the address if nobody answers in time.
StatusOr<std::vector<DeviceAttributes>> ListClusterDevices(const std::string& address,
                                                           absl::Duration timeout);

// Closes all sessions at the target's master and forgets the variables of `containers` (empty: the
// default one) on every task.
Status ResetCluster(const SessionOptions& options, const std::vector<std::string>& containers);

}  // namespace weft::client
