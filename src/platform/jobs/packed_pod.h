// SPDX-License-Identifier: Apache-2.0
// A pod that several tasks share, and each of them as if it had one of its own.
#pragma once

#include <vector>

#include "platform/jobs/task_objects.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// `container` is that of the leader's template; it becomes `weft exec` with a process for each
// task.
void DressSharedContainer(const JobView& view, const TaskPack& pack, Json* container);

// In place of a pod with several tasks one for each, with the task's labels and, when it has ended,
// the task's own end. Where a task was ended only because another one failed the phase is "Ended",
// which is no pod's. The others as they are.
std::vector<ObjectPtr> UnpackTasks(const std::vector<ObjectPtr>& pods);
// In place of such tasks those of `pods` that they are in, each once.
std::vector<ObjectPtr> PodsOfTasks(const std::vector<ObjectPtr>& tasks,
                                   const std::vector<ObjectPtr>& pods);

}  // namespace weft::platform
