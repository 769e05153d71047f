// SPDX-License-Identifier: Apache-2.0
// How many workers a job has while it runs, where its elasticPolicy leaves that to the operator: as
// many as are worth their price, by what the job tells of its progress (DecideScale). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/object/tfjob.h"

namespace weft::platform {

// The operator chooses the job's count.
bool IsScaled(const TfJob& job);
// A count that was decided and that the job's spec does not hold yet.
std::optional<int64_t> WantedWorkers(const TfJob& job, const Json& object);
// The job with that many workers.
Json WithWorkers(const TfJob& job, const Json& object, int64_t workers);

// Measures the rate of the count that runs, by status.progress, and decides about another when
// there is news; both stand in status.scaling. A sentence for people when the count changes, else
// empty.
std::string DecideWorkers(const TfJob& job, absl::Time now, Json* status);

}  // namespace weft::platform
