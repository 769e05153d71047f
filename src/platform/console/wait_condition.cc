// SPDX-License-Identifier: Apache-2.0
#include "platform/console/wait_condition.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "platform/object/fields.h"

namespace weft::platform {

StatusOr<WaitCondition> WaitCondition::Parse(const std::string& text) {
  WaitCondition condition;
  if (text == "delete") return condition;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "condition=")) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(rest, absl::MaxSplits('=', 1));
    condition.kind_ = Kind::kCondition;
    condition.type_ = parts.first;
    condition.value_ = parts.second.empty() ? "True" : parts.second;
    return condition;
  }
  if (!absl::ConsumePrefix(&rest, "jsonpath=")) {
    return InvalidArgument(
        "--for takes condition=<type>[=<status>], jsonpath={.path}[=<value>] or "
        "delete, not '",
        text, "'");
  }
  condition.kind_ = Kind::kPath;
  // A value may hold '=', a path may not.
  const size_t equals = rest.find('=');
  absl::string_view path = rest.substr(0, equals);
  condition.has_value_ = equals != absl::string_view::npos;
  if (condition.has_value_) condition.value_ = std::string(rest.substr(equals + 1));
  for (const char quote : {'"', '\''}) {
    std::string& value = condition.value_;
    if (value.size() >= 2 && value.front() == quote && value.back() == quote)
      value = value.substr(1, value.size() - 2);
  }
  if (absl::ConsumePrefix(&path, "{") && !absl::ConsumeSuffix(&path, "}"))
    return InvalidArgument("--for=jsonpath has no closing brace: '", text, "'");
  WEFT_ASSIGN_OR_RETURN(condition.path_, ParsePath(std::string(path)));
  return condition;
}

StatusOr<std::vector<WaitCondition::Step>> WaitCondition::ParsePath(const std::string& text) {
  std::vector<Step> steps;
  const auto bad = [&](const char* why) {
    return InvalidArgument("--for=jsonpath cannot read '", text, "': ", why,
                           "; a path is like {.status.containerStatuses[0].ready}");
  };
  size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '.') {
      const size_t end = std::min(text.find_first_of(".[", at + 1), text.size());
      if (end == at + 1) return bad("a name is missing");
      steps.push_back({text.substr(at + 1, end - at - 1)});
      at = end;
    } else if (text[at] == '[') {
      const size_t end = text.find(']', at);
      if (end == std::string::npos) return bad("a bracket is not closed");
      const std::string inside = text.substr(at + 1, end - at - 1);
      Step step;
      const bool is_quoted = inside.size() > 2 && (inside[0] == '\'' || inside[0] == '"');
      if (is_quoted) {
        step.field = inside.substr(1, inside.size() - 2);
      } else if (!absl::SimpleAtoi(inside, &step.index)) {
        return bad("filters and ranges are not known here, only an index");
      }
      steps.push_back(step);
      at = end + 1;
    } else {
      return bad("each name begins with a dot");
    }
  }
  if (steps.empty()) return bad("it is empty");
  return steps;
}

bool WaitCondition::IsPathMet(const Json& object) const {
  const Json* found = &object;
  for (const Step& step : path_) {
    if (!step.field.empty()) {
      found = found->is_object() ? found->Find(step.field) : nullptr;
    } else {
      const auto size = found->is_array() ? static_cast<int64_t>(found->size()) : 0;
      const int64_t index = step.index < 0 ? size + step.index : step.index;
      found = index >= 0 && index < size ? &found->items()[static_cast<size_t>(index)] : nullptr;
    }
    if (found == nullptr) return false;
  }
  if (!has_value_) return !found->is_null();
  const StatusOr<std::string> text = found->AsString();
  return (text.ok() ? *text : found->Dump()) == value_;
}

bool WaitCondition::IsMet(const Json* object) const {
  if (kind_ == Kind::kDeletion || object == nullptr)
    return kind_ == Kind::kDeletion && object == nullptr;
  if (kind_ == Kind::kPath) return IsPathMet(*object);
  const Json* const conditions = FindField(*object, {"status", "conditions"});
  return conditions != nullptr &&
         std::any_of(conditions->items().begin(), conditions->items().end(),
                     [&](const Json& condition) {
                       return absl::EqualsIgnoreCase(StringField(condition, {"type"}), type_) &&
                              absl::EqualsIgnoreCase(StringField(condition, {"status"}), value_);
                     });
}

}  // namespace weft::platform
