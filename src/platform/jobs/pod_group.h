// SPDX-License-Identifier: Apache-2.0
// Gang admission: the PodGroup of a job, for Volcano ("volcano") or the scheduler plugins (any
// other name of a scheduler).
#pragma once

#include <string>

#include "net/json.h"
#include "platform/jobs/task_objects.h"
#include "platform/store/resource.h"

namespace weft::platform {

const ResourceType& PodGroupType(const std::string& scheduler);

// Named as the job. By default all tasks start together, with what their pods request.
Json MakePodGroup(const JobView& view, const std::string& scheduler);
// True when the group has each field of the spec that is wanted.
bool HasSpec(const Json& group, const Json& wanted);
// Volcano admits a group before its pods may be made; `group` may be null.
bool MayStart(const Json* group, const std::string& scheduler);

// The scheduler's name and what ties the pod to the group. False when the template names another
// scheduler, which is left.
bool JoinPodGroup(const JobView& view, const std::string& scheduler, ReplicaType type, Json* pod);

}  // namespace weft::platform
