// SPDX-License-Identifier: Apache-2.0
#include "platform/workloads/job_ends.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/job_policies.h"
#include "platform/object/pod_view.h"

namespace weft::platform {
namespace {

// How a container of the pod ended with a code that the rule means; empty: none did.
std::string FindCode(const Json& codes, const Json& pod) {
  const std::string name = StringField(codes, {"containerName"});
  const Json::Array& values = ListField(codes, {"values"});
  const bool wants_in = StringField(codes, {"operator"}) == "In";
  const PodView view(pod);
  for (const Json::Array* list : {&view.container_statuses(), &view.init_container_statuses()}) {
    for (const Json& status : *list) {
      const ContainerStatusView container(status);
      if (!container.has_failed() || (!name.empty() && container.name() != name)) continue;
      const int64_t code = container.ended()->exit_code();
      const bool is_in = std::any_of(values.begin(), values.end(), [&](const Json& value) {
        return value.AsInt().value_or(0) == code;
      });
      if (is_in == wants_in)
        return absl::StrCat("Container ", container.name(), " for pod ", NamespaceOf(pod), "/",
                            NameOf(pod), " failed with exit code ", code);
    }
  }
  return "";
}

std::string FindPodCondition(const Json& rule, const Json& pod) {
  for (const Json& wanted : ListField(rule, {"onPodConditions"})) {
    const std::string type = StringField(wanted, {"type"});
    const Json* const held = ConditionOf(pod, type);
    if (held != nullptr && StringField(*held, {"status"}) == StringField(wanted, {"status"}))
      return absl::StrCat("Pod ", NamespaceOf(pod), "/", NameOf(pod), " has condition ", type);
  }
  return "";
}

}  // namespace

FailureRuling RuleOnFailure(const Json& job, const Json& pod) {
  const Json::Array& rules = ListField(job, {"spec", "podFailurePolicy", "rules"});
  for (size_t i = 0; i < rules.size(); ++i) {
    const Json* const codes = rules[i].Find("onExitCodes");
    const std::string what =
        codes != nullptr ? FindCode(*codes, pod) : FindPodCondition(rules[i], pod);
    if (what.empty()) continue;
    const std::string action = StringField(rules[i], {"action"});
    if (action == "Ignore") return {FailureAction::kIgnore, ""};
    if (action != "FailJob") return {};
    return {FailureAction::kFailJob, absl::StrCat(what, " matching FailJob rule at index ", i)};
  }
  return {};
}

std::optional<std::string> FindMetSuccessRule(const Json& job, const std::set<int64_t>& succeeded) {
  const Json::Array& rules = ListField(job, {"spec", "successPolicy", "rules"});
  for (size_t i = 0; i < rules.size(); ++i) {
    std::set<int64_t> counted = succeeded;
    int64_t needed = IntField(rules[i], {"succeededCount"}, -1);
    if (rules[i].Find("succeededIndexes") != nullptr) {
      const auto named = ParseIndexRanges(StringField(rules[i], {"succeededIndexes"}),
                                          IntField(job, {"spec", "completions"}));
      if (!named.ok()) continue;
      counted.clear();
      std::set_intersection(named->begin(), named->end(), succeeded.begin(), succeeded.end(),
                            std::inserter(counted, counted.end()));
      if (needed < 0) needed = static_cast<int64_t>(named->size());
    }
    if (static_cast<int64_t>(counted.size()) >= needed)
      return absl::StrCat("Matched rules at index ", i);
  }
  return std::nullopt;
}

}  // namespace weft::platform
