// SPDX-License-Identifier: Apache-2.0
// Devices that were given to a pod and have gone since.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

#include "net/json.h"

namespace weft::platform {

// The pod's GPUs (weft.dev/gpu-indices) that `node`, a Node object, lists as unhealthy: "GPU 1
// (GPU-8f...)".
std::vector<std::string> LostGpusOf(const Json& pod, const Json& node);

// For the pod's status: of the type weft.dev/DeviceLost.
Json LostDevicesCondition(const std::vector<std::string>& lost, absl::Time since);
// For its events.
std::string LostDevicesMessage(const std::vector<std::string>& lost);

}  // namespace weft::platform
