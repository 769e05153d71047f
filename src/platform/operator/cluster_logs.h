// SPDX-License-Identifier: Apache-2.0
// What programs printed, read from the logs that a cluster keeps of their pods.
#pragma once

#include <string>

#include "platform/store/kubernetes/kubernetes_store.h"
#include "platform/tuning/trial_metrics.h"

namespace weft::platform {

// What the last lines of the task's container tell of steps, and of stale updates by "staleness";
// null: nothing.
StatusOr<Json> ReadProgress(KubernetesStore* cluster, const ObjectName& pod);

// All of it. PermissionDenied says which rights are missing. Borrows the store.
TrialOutputReader ReadsClusterLogs(KubernetesStore* cluster);

}  // namespace weft::platform
