// SPDX-License-Identifier: Apache-2.0
// How far a job has come, as its pods tell.
#pragma once

#include <string>
#include <vector>

#include "net/json.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// For status.progress: task, step, steps, percent ("20%"), timeLeft ("34s"), metrics, time. From
// the pod that has the chief's role, else from the one that is farthest; null when none tells.
Json ProgressOf(const std::vector<ObjectPtr>& pods);

}  // namespace weft::platform
