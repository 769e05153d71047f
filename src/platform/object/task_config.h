// SPDX-License-Identifier: Apache-2.0
// What a task is told of its job: the variable TF_CONFIG, and the flags of programs older than it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "platform/object/tfjob.h"

namespace weft::platform {

struct TaskCluster {
  const TfJob* job = nullptr;
  // "digits-worker-1.default.svc:2222"
  std::function<std::string(ReplicaType type, int64_t index)> host_of;
  bool has_evaluators = true;  // v1 lists them in the cluster, v1beta1 does not
  bool is_fixed = false;       // nobody comes or goes, whatever enableDynamicWorker says
};

// By type in the order of their names, as the reference operator writes it; with dynamic workers
// the sparse form: a worker knows itself and the parameter servers, so that others may come and go.
// A trial adds task.trial, and job with the container's arguments. Empty when the job has one task
// alone, unless its distribution is automatic: nobody is to be found.
std::string MakeTfConfig(const TaskCluster& cluster, ReplicaType type, int64_t index);

// --job_name=worker --task_index=1 --worker_hosts=... --ps_hosts=..., when the job asks for them.
// Programs that read these know two jobs: a chief is worker 0 and the workers follow. An evaluator
// learns who it is and no hosts.
std::vector<std::string> MakeTaskFlags(const TaskCluster& cluster, ReplicaType type, int64_t index);

}  // namespace weft::platform
