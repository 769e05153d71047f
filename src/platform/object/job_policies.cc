// SPDX-License-Identifier: Apache-2.0
#include "platform/object/job_policies.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"

namespace weft::platform {
namespace {

constexpr size_t kMostRules = 20;
constexpr size_t kMostCodes = 255;
constexpr int64_t kMostIndexes = 100000;  // of a job whose parts are named
constexpr char kNotBelowZero[] = "must be greater than or equal to 0";

void TooMany(const Json& at, const std::string& path, size_t most, size_t held,
             Problems* problems) {
  problems->Add(at, path, absl::StrCat("Too many: ", held, ": must have at most ", most, " items"));
  problems->SetReason("FieldValueTooMany");
}

// One of some words that has to be there.
void CheckChoice(const Json& object, const std::string& path, const char* field,
                 const std::vector<std::string>& allowed, Problems* problems) {
  if (!StringField(object, {field}).empty())
    return CheckWord(object, path, field, allowed, problems);
  problems->Required(object, absl::StrCat(path, ".", field),
                     absl::StrCat("valid values: [\"", absl::StrJoin(allowed, "\" \""), "\"]"));
}

bool HasContainer(const Json& job, const std::string& name) {
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : ListField(job, {"spec", "template", "spec", list})) {
      if (StringField(container, {"name"}) == name) return true;
    }
  }
  return false;
}

void CheckCodes(const Json& job, const Json& codes, const std::string& path, Problems* problems) {
  CheckChoice(codes, path, "operator", {"In", "NotIn"}, problems);
  const std::string container = StringField(codes, {"containerName"});
  if (!container.empty() && !HasContainer(job, container)) {
    problems->Invalid(codes, absl::StrCat(path, ".containerName"), container,
                      "must be one of the container or initContainer names in the pod template");
  }
  const std::string at = absl::StrCat(path, ".values");
  const Json::Array& values = ListField(codes, {"values"});
  if (values.empty()) problems->InvalidAs(codes, at, "[]int32{}", "at least one value is required");
  if (values.size() > kMostCodes) return TooMany(codes, at, kMostCodes, values.size(), problems);
  std::set<int64_t> seen;
  std::vector<int64_t> all;
  bool is_ordered = true;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t value = values[i].AsInt().value_or(0);
    const std::string place = absl::StrCat(at, "[", i, "]");
    if (value == 0 && StringField(codes, {"operator"}) == "In")
      problems->Invalid(values[i], place, value, "must not be 0 for the In operator");
    if (!seen.insert(value).second) problems->Duplicate(values[i], place, value);
    is_ordered = is_ordered && (all.empty() || all.back() <= value);
    all.push_back(value);
  }
  if (!is_ordered) {
    problems->InvalidAs(codes, at, absl::StrCat("[]int32{", absl::StrJoin(all, ", "), "}"),
                        "must be ordered");
  }
}

void CheckFailureRule(const Json& job, const Json& rule, const std::string& path,
                      Problems* problems) {
  CheckChoice(rule, path, "action", {"Count", "FailIndex", "FailJob", "Ignore"}, problems);
  if (StringField(rule, {"action"}) == "FailIndex" &&
      FindField(job, {"spec", "backoffLimitPerIndex"}) == nullptr) {
    problems->Invalid(rule, absl::StrCat(path, ".action"), "FailIndex",
                      "requires the backoffLimitPerIndex to be set");
  }
  const Json* const codes = rule.Find("onExitCodes");
  const Json::Array& conditions = ListField(rule, {"onPodConditions"});
  if (codes != nullptr) CheckCodes(job, *codes, absl::StrCat(path, ".onExitCodes"), problems);
  for (size_t i = 0; i < conditions.size(); ++i) {
    const std::string at = absl::StrCat(path, ".onPodConditions[", i, "]");
    CheckName(conditions[i], absl::StrCat(at, ".type"), StringField(conditions[i], {"type"}),
              QualifiedNameProblems, problems);
    CheckChoice(conditions[i], at, "status", {"False", "True", "Unknown"}, problems);
  }
  if (codes != nullptr && !conditions.empty()) {
    problems->Add(
        rule, path,
        "Invalid value: specifying both OnExitCodes and OnPodConditions is not supported");
  } else if (codes == nullptr && conditions.empty()) {
    problems->Add(rule, path,
                  "Invalid value: specifying one of OnExitCodes and OnPodConditions is required");
  }
}

void CheckFailurePolicy(const Json& job, Problems* problems) {
  const Json* const policy = FindField(job, {"spec", "podFailurePolicy"});
  if (policy == nullptr) return;
  const std::string restarts = StringField(job, {"spec", "template", "spec", "restartPolicy"});
  if (restarts != "Never") {
    problems->Invalid(*policy, "spec.template.spec.restartPolicy", restarts,
                      "only \"Never\" is supported when podFailurePolicy is specified");
  }
  const std::string replaces = StringField(job, {"spec", "podReplacementPolicy"});
  if (replaces == "TerminatingOrFailed")
    problems->Unsupported(*policy, "spec.podReplacementPolicy", replaces, {"Failed"});
  const std::string path = "spec.podFailurePolicy.rules";
  const Json::Array& rules = ListField(*policy, {"rules"});
  if (rules.size() > kMostRules) return TooMany(*policy, path, kMostRules, rules.size(), problems);
  for (size_t i = 0; i < rules.size(); ++i)
    CheckFailureRule(job, rules[i], absl::StrCat(path, "[", i, "]"), problems);
}

void CheckSuccessRule(const Json& rule, int64_t completions, const std::string& path,
                      Problems* problems) {
  const Json* const indexes = rule.Find("succeededIndexes");
  const Json* const count = rule.Find("succeededCount");
  if (indexes == nullptr && count == nullptr) {
    return problems->Required(
        rule, path, "at least one of succeededCount or succeededIndexes must be specified");
  }
  int64_t most = completions;
  std::string of = "the number of specified completions";
  if (indexes != nullptr) {
    const std::string text = indexes->AsString().value_or("");
    const StatusOr<std::set<int64_t>> parsed = ParseIndexRanges(text, completions);
    if (!parsed.ok()) {
      problems->Invalid(
          *indexes, absl::StrCat(path, ".succeededIndexes"), text,
          absl::StrCat("error parsing succeededIndexes: ", parsed.status().message()));
    } else {
      most = static_cast<int64_t>(parsed->size());
      of = "the number of indexes in the specified succeededIndexes field";
    }
  }
  if (count == nullptr) return;
  const std::string at = absl::StrCat(path, ".succeededCount");
  const int64_t wanted = count->AsInt().value_or(0);
  if (wanted < 0) problems->Invalid(*count, at, wanted, kNotBelowZero);
  if (wanted > most) {
    problems->Invalid(*count, at, wanted,
                      absl::StrCat("must be less than or equal to ", most, " (", of, ")"));
  }
}

void CheckSuccessPolicy(const Json& job, bool is_indexed, int64_t completions, Problems* problems) {
  const Json* const policy = FindField(job, {"spec", "successPolicy"});
  if (policy == nullptr) return;
  if (!is_indexed) {
    return problems->Invalid(*policy, "spec.successPolicy", *policy,
                             "requires indexed completion mode");
  }
  const std::string path = "spec.successPolicy.rules";
  const Json::Array& rules = ListField(*policy, {"rules"});
  if (rules.empty()) {
    return problems->Required(
        *policy, path, "at least one rules must be specified when the successPolicy is specified");
  }
  if (rules.size() > kMostRules) return TooMany(*policy, path, kMostRules, rules.size(), problems);
  for (size_t i = 0; i < rules.size(); ++i)
    CheckSuccessRule(rules[i], completions, absl::StrCat(path, "[", i, "]"), problems);
}

void CheckIndexLimits(const Json& job, bool is_indexed, int64_t completions, Problems* problems) {
  const Json* const backoff = FindField(job, {"spec", "backoffLimitPerIndex"});
  const Json* const most = FindField(job, {"spec", "maxFailedIndexes"});
  for (const auto& [name, held] :
       {std::pair{"backoffLimitPerIndex", backoff}, {"maxFailedIndexes", most}}) {
    if (held == nullptr) continue;
    const std::string path = absl::StrCat("spec.", name);
    if (!is_indexed) problems->Invalid(*held, path, *held, "requires indexed completion mode");
    if (held->AsInt().value_or(0) < 0) problems->Invalid(*held, path, *held, kNotBelowZero);
  }
  if (most == nullptr) return;
  if (backoff == nullptr) {
    problems->Required(*most, "spec.backoffLimitPerIndex", "when maxFailedIndexes is specified");
  }
  if (is_indexed && most->AsInt().value_or(0) > completions) {
    problems->Invalid(*most, "spec.maxFailedIndexes", *most,
                      "must be less than or equal to completions");
  }
}

}  // namespace

void DefaultJobPolicies(Json* job) {
  if (FindField(*job, {"spec", "backoffLimitPerIndex"}) != nullptr)
    SetDefault(job, {"spec", "backoffLimit"}, int64_t{INT32_MAX});
  if (FindField(*job, {"spec", "podFailurePolicy"}) == nullptr) return;
  SetDefault(job, {"spec", "podReplacementPolicy"}, "Failed");
  Json* const rules =
      job->FindMutable("spec")->FindMutable("podFailurePolicy")->FindMutable("rules");
  if (rules == nullptr || !rules->is_array()) return;
  for (Json& rule : *rules->mutable_items()) {
    Json* const conditions = rule.FindMutable("onPodConditions");
    if (conditions == nullptr || !conditions->is_array()) continue;
    for (Json& condition : *conditions->mutable_items()) SetDefault(&condition, {"status"}, "True");
  }
}

void CheckJobPolicies(const Json& job, Problems* problems) {
  const bool is_indexed = StringField(job, {"spec", "completionMode"}) == "Indexed";
  const int64_t completions = IntField(job, {"spec", "completions"});
  CheckFailurePolicy(job, problems);
  CheckSuccessPolicy(job, is_indexed, completions, problems);
  CheckIndexLimits(job, is_indexed, completions, problems);
}

StatusOr<std::set<int64_t>> ParseIndexRanges(absl::string_view text, int64_t completions) {
  std::set<int64_t> indexes;
  int64_t previous = -1;
  const auto read = [&](absl::string_view part) -> StatusOr<int64_t> {
    int64_t index = 0;
    if (!absl::SimpleAtoi(part, &index))
      return InvalidArgument("cannot convert string to integer for index: \"", part, "\"");
    if (index >= completions || index >= kMostIndexes)
      return InvalidArgument("too large index: \"", part, "\"");
    if (index <= previous) {
      return InvalidArgument("non-increasing order, previous: ", previous, ", current: ", index);
    }
    previous = index;
    return index;
  };
  for (const absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::vector<absl::string_view> ends = absl::StrSplit(item, '-');
    if (ends.size() > 2)
      return InvalidArgument("the fragment \"", item,
                             "\" violates the requirement that an index "
                             "interval can have at most two parts separated by '-'");
    WEFT_ASSIGN_OR_RETURN(const int64_t first, read(ends[0]));
    int64_t last = first;
    if (ends.size() == 2) {
      WEFT_ASSIGN_OR_RETURN(last, read(ends[1]));
    }
    for (int64_t index = first; index <= last; ++index) indexes.insert(index);
  }
  return indexes;
}

}  // namespace weft::platform
