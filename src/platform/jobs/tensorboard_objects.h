// SPDX-License-Identifier: Apache-2.0
// The pod and the service of a job's TensorBoard. It is no task: nothing of the job's fate hangs on
// it.
#pragma once

#include "net/json.h"
#include "platform/jobs/task_objects.h"

namespace weft::platform {

inline constexpr char kTensorBoardType[] = "tensorboard";

// Both are named "<job>-tensorboard". It shows the whole folder, of which each task's folder is a
// run, with the volumes that the tasks have there. For jobs that ask for it.
Json MakeTensorBoardPod(const JobView& view);
Json MakeTensorBoardService(const JobView& view);

}  // namespace weft::platform
