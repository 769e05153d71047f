// SPDX-License-Identifier: Apache-2.0
// Tasks of a job that share a pod, as processes of one container.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "platform/object/tfjob.h"

namespace weft::platform {

struct TaskId {
  ReplicaType type = ReplicaType::kWorker;
  int64_t index = 0;
  auto operator<=>(const TaskId&) const = default;
};

// The first one leads: the pod has its name and its labels. Two tasks or more.
using TaskPack = std::vector<TaskId>;

// "worker-1"
std::string NameOfTask(const TaskId& task);
// "worker-0,ps-0,worker-1"; empty when it is no list of tasks.
std::string FormatPack(const TaskPack& pack);
TaskPack ParsePack(absl::string_view text);

// The one of `packs` that the task is in, or null: it has a pod of its own.
const TaskPack* FindPack(const std::vector<TaskPack>& packs, const TaskId& task);
// Each task that stands there is one of the job.
bool ArePacksOf(const TfJob& job, const std::vector<TaskPack>& packs);

}  // namespace weft::platform
