// SPDX-License-Identifier: Apache-2.0
// What `weft wait --for` waits for.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

class WaitCondition {
 public:
  // "condition=TYPE[=STATUS]", "jsonpath={.a.b[0].c}[=VALUE]" (any value when none is said), or
  // "delete". InvalidArgument says what cannot be read.
  static StatusOr<WaitCondition> Parse(const std::string& text);
  // `object` is null when there is none.
  bool IsMet(const Json* object) const;

 private:
  enum class Kind { kDeletion, kCondition, kPath };
  struct Step {
    std::string field;  // empty: an item
    int64_t index = 0;  // of a list; from its end below zero
  };
  static StatusOr<std::vector<Step>> ParsePath(const std::string& text);
  bool IsPathMet(const Json& object) const;

  Kind kind_ = Kind::kDeletion;
  std::string type_;
  std::string value_;
  bool has_value_ = false;
  std::vector<Step> path_;
};

}  // namespace weft::platform
