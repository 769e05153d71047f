// SPDX-License-Identifier: Apache-2.0
// Which GPUs of the machine a container's program sees.
#pragma once

#include <string>
#include <vector>

#include "net/json.h"

namespace weft::platform {

// The variables by which CUDA, ROCm and the container runtimes show GPUs: those that the pod was
// given (weft.dev/gpu-indices), each container as many of them as it asks for, in the order of the
// containers; and none to who asks for none, on a node that has any. `node` is the Node object.
void SetGpuVariables(const Json& pod, const Json& container, const Json& node,
                     std::vector<std::string>* environment);

}  // namespace weft::platform
