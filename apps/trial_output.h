// SPDX-License-Identifier: Apache-2.0
// Where the output of trials' pods is read, for their metrics.
#pragma once

#include <string>

#include "platform/store/kubernetes/kubernetes_store.h"
#include "platform/tuning/trial_metrics.h"

namespace weft::apps {

// From the folder of `weft up`'s logs.
platform::TrialOutputReader ReadsLogFolder(std::string folder);
// From a cluster, which must outlive it.
platform::TrialOutputReader ReadsClusterLogs(platform::KubernetesStore* cluster);

}  // namespace weft::apps
