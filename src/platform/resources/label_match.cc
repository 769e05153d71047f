// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/label_match.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"

#include "platform/object/fields.h"

namespace weft::platform {
namespace {

using Operator = LabelRequirement::Operator;

bool IsAmong(const std::string& value, const std::vector<std::string>& values) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

Labels ReadLabels(const Json* mapping) {
  Labels labels;
  if (mapping == nullptr) return labels;
  for (const JsonMember& member : mapping->members())
    labels[member.name] = member.value.AsString().value_or("");
  return labels;
}

bool Matches(const LabelRequirement& requirement, const Labels& labels) {
  const auto found = labels.find(requirement.key);
  const bool is_there = found != labels.end();
  switch (requirement.op) {
    case Operator::kIn:
      return is_there && IsAmong(found->second, requirement.values);
    case Operator::kNotIn:
      return !is_there || !IsAmong(found->second, requirement.values);
    case Operator::kExists:
      return is_there;
    case Operator::kDoesNotExist:
      return !is_there;
    case Operator::kGreater:
    case Operator::kLess: {
      int64_t label = 0;
      int64_t bound = 0;
      if (!is_there || requirement.values.size() != 1 || !absl::SimpleAtoi(found->second, &label) ||
          !absl::SimpleAtoi(requirement.values[0], &bound))
        return false;
      return requirement.op == Operator::kGreater ? label > bound : label < bound;
    }
  }
  return false;
}

bool Matches(const LabelSelector& selector, const Labels& labels) {
  return selector.is_set &&
         std::all_of(selector.requirements.begin(), selector.requirements.end(),
                     [&](const LabelRequirement& each) { return Matches(each, labels); });
}

StatusOr<LabelRequirement> ReadLabelRequirement(const Json& expression) {
  static const std::pair<const char*, Operator> kOperators[] = {
      {"In", Operator::kIn},         {"NotIn", Operator::kNotIn},
      {"Exists", Operator::kExists}, {"DoesNotExist", Operator::kDoesNotExist},
      {"Gt", Operator::kGreater},    {"Lt", Operator::kLess}};
  LabelRequirement requirement;
  requirement.key = StringField(expression, {"key"});
  const std::string name = StringField(expression, {"operator"});
  const auto* const found = std::find_if(std::begin(kOperators), std::end(kOperators),
                                         [&](const auto& entry) { return name == entry.first; });
  if (found == std::end(kOperators)) {
    return InvalidArgument("operator of '", requirement.key, "' holds '", name,
                           "', In, NotIn, Exists, DoesNotExist, Gt or Lt is allowed");
  }
  requirement.op = found->second;
  if (const Json* const values = FindField(expression, {"values"})) {
    for (const Json& value : values->items())
      requirement.values.push_back(value.AsString().value_or(""));
  }
  return requirement;
}

StatusOr<LabelSelector> ReadLabelSelector(const Json* selector) {
  LabelSelector read;
  if (selector == nullptr) return read;
  read.is_set = true;
  for (const auto& [key, value] : ReadLabels(FindField(*selector, {"matchLabels"})))
    read.requirements.push_back({key, Operator::kIn, {value}});
  if (const Json* const expressions = FindField(*selector, {"matchExpressions"})) {
    for (const Json& expression : expressions->items()) {
      WEFT_ASSIGN_OR_RETURN(LabelRequirement requirement, ReadLabelRequirement(expression));
      read.requirements.push_back(std::move(requirement));
    }
  }
  return read;
}

}  // namespace weft::platform
