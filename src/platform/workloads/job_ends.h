// SPDX-License-Identifier: Apache-2.0
// What a Job's own rules say of the ends of its pods: podFailurePolicy and successPolicy. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "net/json.h"

namespace weft::platform {

enum class FailureAction { kCount, kIgnore, kFailJob };

struct FailureRuling {
  FailureAction action = FailureAction::kCount;
  std::string message;  // of kFailJob
};
// The first rule that fits the failed pod; kCount where none does.
FailureRuling RuleOnFailure(const Json& job, const Json& pod);

// What the job has reached when these indices have succeeded: "Matched rules at index 0"; nothing
// while it has to go on.
std::optional<std::string> FindMetSuccessRule(const Json& job, const std::set<int64_t>& succeeded);

}  // namespace weft::platform
