// SPDX-License-Identifier: Apache-2.0
// Label and field selectors: "app=x,tier in (a,b),!old", "metadata.name=x,status.phase!=Running".
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// What an object must have. Empty matches all. Thread-compatible.
class Selector {
 public:
  Selector() = default;
  // InvalidArgument says which part is malformed.
  static StatusOr<Selector> ParseLabels(absl::string_view text);
  // Any path of the object may be compared; a missing field is the empty string.
  static StatusOr<Selector> ParseFields(absl::string_view text);

  // Of a `selector` field: matchLabels and matchExpressions. InvalidArgument for an operator that
  // is not known.
  static StatusOr<Selector> FromObject(const Json& selector);

  bool Matches(const Json& object) const;
  bool empty() const { return requirements_.empty(); }
  // No object of this name matches, whatever else it holds.
  bool ExcludesName(absl::string_view name) const;
  // The labels or fields that it asks for.
  std::vector<std::string> Keys() const;

 private:
  enum class Operator { kIn, kNotIn, kExists, kDoesNotExist, kGreater, kLess };
  struct Requirement {
    bool is_field = false;
    std::string key;
    Operator op = Operator::kIn;
    std::vector<std::string> values;
  };
  static StatusOr<Requirement> ParseRequirement(absl::string_view text);
  static bool MatchesOne(const Requirement& requirement, const Json& object);

  std::vector<Requirement> requirements_;
};

// "a=b,c=d" for what the labels say; for lists of what one object owns.
std::string LabelSelectorOf(const std::vector<std::pair<std::string, std::string>>& labels);

}  // namespace weft::platform
