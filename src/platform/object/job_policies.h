// SPDX-License-Identifier: Apache-2.0
// What a Job of batch/v1 says of its pods' ends: podFailurePolicy, successPolicy, and limits for
// each index.
#pragma once

#include <cstdint>
#include <set>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

void DefaultJobPolicies(Json* job);
// As an API server checks them, in its words.
void CheckJobPolicies(const Json& job, Problems* problems);

// "0-2,5" of a job with so many completions. InvalidArgument says what is wrong.
StatusOr<std::set<int64_t>> ParseIndexRanges(absl::string_view text, int64_t completions);

}  // namespace weft::platform
