// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/metadata_checks.h"
#include "platform/object/pod_checks.h"

namespace weft::platform {
namespace {

const Json::Array& Items(const Json& object, FieldPath path) {
  static const auto* const empty = new Json::Array;
  const Json* const list = FindField(object, path);
  return list == nullptr ? *empty : list->items();
}

void CheckToleration(const Json& toleration, const std::string& path, Problems* problems) {
  const std::string key = StringField(toleration, {"key"});
  const std::string verb = StringField(toleration, {"operator"});
  const std::string value = StringField(toleration, {"value"});
  const std::string of_verb = absl::StrCat(path, ".operator");
  if (!key.empty()) {
    CheckName(toleration, absl::StrCat(path, ".key"), key, QualifiedNameProblems, problems);
  } else if (verb != "Exists") {
    problems->Invalid(toleration, of_verb, verb,
                      "operator must be Exists when `key` is empty, which means \"match all "
                      "values and all keys\"");
  }
  const std::string effect = StringField(toleration, {"effect"});
  if (FindField(toleration, {"tolerationSeconds"}) != nullptr && effect != "NoExecute") {
    problems->Invalid(toleration, absl::StrCat(path, ".effect"), effect,
                      "effect must be 'NoExecute' when `tolerationSeconds` is set");
  }
  if (verb.empty() || verb == "Equal") {
    CheckName(toleration, of_verb, value, LabelValueProblems, problems);
  } else if (verb == "Exists") {
    if (!value.empty()) {
      problems->Invalid(toleration, of_verb, value,
                        "value must be empty when `operator` is 'Exists'");
    }
  } else {
    problems->Unsupported(toleration, of_verb, verb, {"Equal", "Exists"});
  }
  if (!effect.empty() && effect != "NoSchedule" && effect != "PreferNoSchedule" &&
      effect != "NoExecute") {
    problems->Unsupported(toleration, absl::StrCat(path, ".effect"), effect,
                          {"NoSchedule", "PreferNoSchedule", "NoExecute"});
  }
}

void CheckExpression(const Json& expression, bool checks_values, const std::string& path,
                     Problems* problems) {
  const std::string verb = StringField(expression, {"operator"});
  const Json::Array& values = Items(expression, {"values"});
  const std::string of_values = absl::StrCat(path, ".values");
  if (verb == "In" || verb == "NotIn") {
    if (values.empty()) {
      problems->Required(expression, of_values,
                         "must be specified when `operator` is 'In' or 'NotIn'");
    }
  } else if (verb == "Exists" || verb == "DoesNotExist") {
    if (!values.empty()) {
      problems->Forbidden(expression, of_values,
                          "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    }
  } else if (verb == "Gt" || verb == "Lt") {
    if (values.size() != 1) {
      problems->Required(expression, of_values,
                         "must be specified single value when `operator` is 'Lt' or 'Gt'");
    }
  } else {
    problems->Invalid(expression, absl::StrCat(path, ".operator"), verb,
                      "not a valid selector operator");
  }
  CheckName(expression, absl::StrCat(path, ".key"), StringField(expression, {"key"}),
            QualifiedNameProblems, problems);
  if (!checks_values) return;
  for (size_t i = 0; i < values.size(); ++i) {
    CheckName(values[i], absl::StrCat(of_values, "[", i, "]"), values[i].AsString().value_or(""),
              LabelValueProblems, problems);
  }
}

void CheckNodeTerm(const Json& term, bool checks_values, const std::string& path,
                   Problems* problems) {
  size_t index = 0;
  for (const Json& one : Items(term, {"matchExpressions"})) {
    CheckExpression(one, checks_values, absl::StrCat(path, ".matchExpressions[", index++, "]"),
                    problems);
  }
  index = 0;
  for (const Json& one : Items(term, {"matchFields"})) {
    const std::string at = absl::StrCat(path, ".matchFields[", index++, "]");
    const std::string verb = StringField(one, {"operator"});
    if (verb != "In" && verb != "NotIn") {
      problems->Invalid(one, absl::StrCat(at, ".operator"), verb, "not a valid selector operator");
    } else if (Items(one, {"values"}).size() != 1) {
      problems->Required(one, absl::StrCat(at, ".values"),
                         "must be only one value when `operator` is 'In' or 'NotIn' for node "
                         "field selector");
    }
    if (StringField(one, {"key"}) != "metadata.name") {
      problems->Invalid(one, absl::StrCat(at, ".key"), StringField(one, {"key"}),
                        "not a valid field selector key");
    }
  }
}

void CheckWeight(const Json& term, const std::string& path, Problems* problems) {
  const int64_t weight = IntField(term, {"weight"});
  if (weight >= 1 && weight <= 100) return;
  problems->Invalid(term, absl::StrCat(path, ".weight"), weight, "must be in the range 1-100");
}

// Labels of the pod itself, by whose values others are chosen.
void CheckMatchedKeys(const Json& term, const std::string& path, Problems* problems) {
  const Json::Array& unlike = Items(term, {"mismatchLabelKeys"});
  for (const char* field : {"matchLabelKeys", "mismatchLabelKeys"}) {
    const Json::Array& keys = Items(term, {field});
    const std::string at = absl::StrCat(path, ".", field);
    if (!keys.empty() && FindField(term, {"labelSelector"}) == nullptr)
      problems->Forbidden(term, at, "must not be specified when labelSelector is not set");
    for (size_t i = 0; i < keys.size(); ++i) {
      const std::string key = keys[i].AsString().value_or("");
      CheckName(keys[i], absl::StrCat(at, "[", i, "]"), key, QualifiedNameProblems, problems);
      if (&keys != &unlike && std::find(unlike.begin(), unlike.end(), keys[i]) != unlike.end()) {
        problems->Invalid(keys[i], absl::StrCat(at, "[", i, "]"), key,
                          "exists in both matchLabelKeys and mismatchLabelKeys");
      }
    }
  }
}

void CheckPodTerm(const Json& term, const std::string& path, Problems* problems) {
  if (const Json* const selector = FindField(term, {"labelSelector"}))
    CheckLabelSelector(*selector, absl::StrCat(path, ".labelSelector"), problems);
  const std::string key = StringField(term, {"topologyKey"});
  if (key.empty()) problems->Required(term, absl::StrCat(path, ".topologyKey"), "can not be empty");
  CheckName(term, absl::StrCat(path, ".topologyKey"), key, QualifiedNameProblems, problems);
  for (const Json& name : Items(term, {"namespaces"})) {
    CheckName(name, absl::StrCat(path, ".namespace"), name.AsString().value_or(""),
              LabelNameProblems, problems);
  }
  CheckMatchedKeys(term, path, problems);
}

void CheckAffinity(const Json& affinity, const std::string& path, Problems* problems) {
  static constexpr char kRequired[] = "requiredDuringSchedulingIgnoredDuringExecution";
  static constexpr char kPreferred[] = "preferredDuringSchedulingIgnoredDuringExecution";
  if (const Json* const required = FindField(affinity, {"nodeAffinity", kRequired})) {
    const std::string at = absl::StrCat(path, ".nodeAffinity.", kRequired, ".nodeSelectorTerms");
    const Json::Array& terms = Items(*required, {"nodeSelectorTerms"});
    if (terms.empty())
      problems->Required(*required, at, "must have at least one node selector term");
    for (size_t i = 0; i < terms.size(); ++i)
      CheckNodeTerm(terms[i], true, absl::StrCat(at, "[", i, "]"), problems);
  }
  size_t index = 0;
  for (const Json& term : Items(affinity, {"nodeAffinity", kPreferred})) {
    const std::string at = absl::StrCat(path, ".nodeAffinity.", kPreferred, "[", index++, "]");
    CheckWeight(term, at, problems);
    if (const Json* const preference = FindField(term, {"preference"}))
      CheckNodeTerm(*preference, false, absl::StrCat(at, ".preference"), problems);
  }
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    index = 0;
    for (const Json& term : Items(affinity, {kind, kRequired})) {
      CheckPodTerm(term, absl::StrCat(path, ".", kind, ".", kRequired, "[", index++, "]"),
                   problems);
    }
    index = 0;
    for (const Json& term : Items(affinity, {kind, kPreferred})) {
      const std::string at = absl::StrCat(path, ".", kind, ".", kPreferred, "[", index++, "]");
      CheckWeight(term, at, problems);
      const Json* const inner = FindField(term, {"podAffinityTerm"});
      CheckPodTerm(inner == nullptr ? Json::MakeObject() : *inner,
                   absl::StrCat(at, ".podAffinityTerm"), problems);
    }
  }
}

void CheckSpread(const Json::Array& constraints, const std::string& path, Problems* problems) {
  for (size_t i = 0; i < constraints.size(); ++i) {
    const Json& one = constraints[i];
    const std::string at = absl::StrCat(path, "[", i, "]");
    const int64_t skew = IntField(one, {"maxSkew"});
    if (skew <= 0)
      problems->Invalid(one, absl::StrCat(at, ".maxSkew"), skew, "must be greater than zero");
    const std::string key = StringField(one, {"topologyKey"});
    if (key.empty()) problems->Required(one, absl::StrCat(at, ".topologyKey"), "can not be empty");
    const std::string action = StringField(one, {"whenUnsatisfiable"});
    if (action != "DoNotSchedule" && action != "ScheduleAnyway") {
      problems->Unsupported(one, absl::StrCat(at, ".whenUnsatisfiable"), action,
                            {"DoNotSchedule", "ScheduleAnyway"});
    }
    if (FindField(one, {"minDomains"}) != nullptr) {
      const int64_t domains = IntField(one, {"minDomains"});
      const std::string of_domains = absl::StrCat(at, ".minDomains");
      if (domains <= 0) problems->Invalid(one, of_domains, domains, "must be greater than zero");
      if (action != "DoNotSchedule") {
        problems->Invalid(
            one, of_domains, domains,
            absl::StrCat("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ",
                         action));
      }
    }
    for (const char* field : {"nodeAffinityPolicy", "nodeTaintsPolicy"})
      CheckWord(one, at, field, {"Honor", "Ignore"}, problems);
    const std::string pair = absl::StrCat("{", key, ", ", action, "}");
    for (size_t later = i + 1; later < constraints.size(); ++later) {
      if (StringField(constraints[later], {"topologyKey"}) != key ||
          StringField(constraints[later], {"whenUnsatisfiable"}) != action)
        continue;
      problems->Duplicate(one, absl::StrCat(at, ".{topologyKey, whenUnsatisfiable}"), pair);
      break;
    }
    if (const Json* const selector = FindField(one, {"labelSelector"}))
      CheckLabelSelector(*selector, absl::StrCat(at, ".labelSelector"), problems);
  }
}

}  // namespace

void CheckPlacement(const Json& spec, const std::string& path, Problems* problems) {
  if (const Json* const selector = FindField(spec, {"nodeSelector"}))
    CheckLabels(*selector, absl::StrCat(path, ".nodeSelector"), problems);
  if (const Json* const affinity = FindField(spec, {"affinity"}))
    CheckAffinity(*affinity, absl::StrCat(path, ".affinity"), problems);
  std::set<std::string> gates;
  size_t index = 0;
  for (const Json& gate : Items(spec, {"schedulingGates"})) {
    const std::string at = absl::StrCat(path, ".schedulingGates[", index++, "]");
    const std::string name = StringField(gate, {"name"});
    CheckName(gate, at, name, QualifiedNameProblems, problems);
    if (!gates.insert(name).second) problems->Duplicate(gate, at, name);
  }
  if (!gates.empty() && !StringField(spec, {"nodeName"}).empty()) {
    problems->Forbidden(spec, absl::StrCat(path, ".nodeName"),
                        "cannot be set until all schedulingGates have been cleared");
  }
  index = 0;
  for (const Json& gate : Items(spec, {"readinessGates"})) {
    CheckName(gate, absl::StrCat(path, ".readinessGates[", index++, "].conditionType"),
              StringField(gate, {"conditionType"}), QualifiedNameProblems, problems);
  }
  CheckSpread(Items(spec, {"topologySpreadConstraints"}),
              absl::StrCat(path, ".topologySpreadConstraints"), problems);
  index = 0;
  for (const Json& toleration : Items(spec, {"tolerations"})) {
    CheckToleration(toleration, absl::StrCat(path, ".tolerations[", index++, "]"), problems);
  }
}

}  // namespace weft::platform
