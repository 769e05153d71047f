// SPDX-License-Identifier: Apache-2.0
// That the API server refuses the pods of a job, as a condition of the job.
#pragma once

#include "absl/time/time.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// As ReplicaSets have it, with the server's own words: a quota, an admission, a missing right.
inline constexpr char kReplicaFailure[] = "ReplicaFailure";

// After pods and services of the job were to be made: what was refused stands in the status from
// then on, and no longer once they are there. An error that another try may not meet changes
// nothing.
void TellReplicaFailure(const Status& created, absl::Time now, Json* status);

}  // namespace weft::platform
