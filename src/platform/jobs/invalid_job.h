// SPDX-License-Identifier: Apache-2.0
// A job that cannot be read: what no schema and no webhook has kept away.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/jobs/tfjob_plan.h"

namespace weft::platform {

// One that has not begun fails with its problems. One that has is left as it is, with the condition
// Invalid, until it is corrected: a slip in an edit must not end what trains. Its time to live
// holds for one that has ended.
JobPlan PlanInvalidJob(const Json& object, const std::string& kind, const std::string& problems,
                       absl::Time now);

}  // namespace weft::platform
