// SPDX-License-Identifier: Apache-2.0
// How the tasks of a job that runs weft's servers are kept from others on the cluster's network: by
// a secret of the job, or, where it asks to be insecure, by a network policy alone.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "base/status.h"
#include "platform/jobs/task_objects.h"
#include "platform/store/resource.h"

namespace weft::platform {

// Of networking.k8s.io: nothing here serves them.
const ResourceType& NetworkPolicies();

// What the job asks for (weft.dev/task-security), or kTls where a task's command runs weft; kNone
// where nobody but the job's own host reaches its tasks.
TaskSecurity SecurityOf(const JobView& view);

// What a task's pod needs for it: the secret's volume and where it is, or leave to be insecure.
void SecurePod(const JobView& view, Json* pod);

// One a job, owned by it; null where the job needs none. The secret is without its data.
Json MakeTaskSecret(const JobView& view);
Json MakeTaskNetworkPolicy(const JobView& view);
// Fresh keys, which are never read again.
Status FillTaskSecret(absl::Time now, Json* secret);

}  // namespace weft::platform
