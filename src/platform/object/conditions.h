// SPDX-License-Identifier: Apache-2.0
// Conditions of a status as controllers of Kubernetes write them.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "net/json.h"

namespace weft::platform {

// Of that type, in `status`: its time changes with its truth, and what says the same already stays.
void SetCondition(const char* type, bool is_true, const std::string& reason,
                  const std::string& message, absl::Time now, Json* status);

// Its parts, for kinds whose conditions have other fields or stay for other reasons.
// Whether the condition that is held (null: none) is of that truth and reason.
bool SaysTheSame(const Json* held, bool is_true, const std::string& reason);
Json MakeCondition(const char* type, bool is_true, const std::string& reason,
                   const std::string& message, absl::Time now);
// Puts it last, in place of the one of its type; its lastTransitionTime is that one's if it is as
// true.
void ReplaceCondition(Json condition, absl::Time now, Json* status);

}  // namespace weft::platform
