// SPDX-License-Identifier: Apache-2.0
// How far a job has come, as its pods tell.
#pragma once

#include <cstdint>
#include <vector>

#include "net/json.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// For status.progress: task, step, steps, percent ("20%"), timeLeft ("34s"), metrics, time. From
// the pod that has the chief's role, else from the one that is farthest; null when none tells.
Json ProgressOf(const std::vector<ObjectPtr>& pods);

// For status.progress.staleness: that of all parameter servers, as their pods tell; null when none
// does.
Json StalenessOf(const std::vector<ObjectPtr>& pods);

// How many steps are lost when `progress` comes after `before` (null: nothing was told yet): the
// task that tells was farther before, and began again from an earlier checkpoint.
int64_t LostSteps(const Json& before, const Json& progress);

}  // namespace weft::platform
