// SPDX-License-Identifier: Apache-2.0
// Selectors over labels as pods write them, read once and matched often.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

using Labels = std::map<std::string, std::string>;
Labels ReadLabels(const Json* mapping);

struct LabelRequirement {
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist, kGreater, kLess };
  std::string key;
  Operator op = Operator::kIn;
  std::vector<std::string> values;
};
bool Matches(const LabelRequirement& requirement, const Labels& labels);

// All requirements hold. One that was not there at all matches nothing, an empty one everything.
struct LabelSelector {
  bool is_set = false;
  std::vector<LabelRequirement> requirements;
};
bool Matches(const LabelSelector& selector, const Labels& labels);

// Of {matchLabels, matchExpressions}; null is a selector that is not there.
StatusOr<LabelSelector> ReadLabelSelector(const Json* selector);
// One {key, operator, values}. InvalidArgument names the operator.
StatusOr<LabelRequirement> ReadLabelRequirement(const Json& expression);

}  // namespace weft::platform
