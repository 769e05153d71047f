// SPDX-License-Identifier: Apache-2.0
// Whose rights a container's processes have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/subprocess.h"
#include "net/json.h"

namespace weft::platform {

// By the securityContext of container and pod: runAsUser, runAsGroup, supplementalGroups, fsGroup.
// None: ours, and `told` says so when another was asked for that only root could become.
// FailedPrecondition when it must not be root and would be.
StatusOr<std::optional<ProcessOwner>> OwnerOf(const Json& pod, const Json& container,
                                              std::string* told);

// HOME, USER and LOGNAME of that user.
void SetOwnerEnvironment(const ProcessOwner& owner, std::vector<std::string>* environment);

}  // namespace weft::platform
