// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/pod_checks.h"
#include "platform/store/api_error.h"
#include "platform/store/embedded/defaults.h"
#include "platform/store/embedded/kind_rules.h"

namespace weft::platform {
namespace {

// The class that counts for those that name none.
ObjectPtr DefaultClass(const ObjectFinder& find) {
  ObjectPtr best;
  for (const ObjectPtr& one : find.list(PriorityClasses())) {
    if (!BoolField(*one, {"globalDefault"})) continue;
    if (best == nullptr || IntField(*one, {"value"}) < IntField(*best, {"value"})) best = one;
  }
  return best;
}

// From a name to what it counts, as the server's admission does.
Status SetPriority(const ResourceType& type, const ObjectFinder& find, Json* pod) {
  const std::string name = StringField(*pod, {"spec", "priorityClassName"});
  const ObjectPtr found =
      name.empty() ? DefaultClass(find) : find.get(PriorityClasses(), {"", name});
  if (!name.empty() && found == nullptr) {
    return ObjectForbidden(type, NameOf(*pod),
                           absl::StrCat("no PriorityClass with name ", name, " was found"));
  }
  const int64_t priority = found == nullptr ? 0 : IntField(*found, {"value"});
  const Json* const asked = FindField(*pod, {"spec", "priority"});
  if (asked != nullptr && asked->AsInt().value_or(0) != priority) {
    return ObjectForbidden(
        type, NameOf(*pod),
        absl::StrCat("the integer value of priority (", asked->AsInt().value_or(0),
                     ") must not be provided in pod spec; priority admission controller computed ",
                     priority, " from the given PriorityClass name"));
  }
  SetField(pod, {"spec", "priority"}, priority);
  if (found != nullptr && name.empty())
    SetField(pod, {"spec", "priorityClassName"}, NameOf(*found));
  if (found != nullptr && FindField(*found, {"preemptionPolicy"}) != nullptr)
    SetDefault(pod, {"spec", "preemptionPolicy"}, *FindField(*found, {"preemptionPolicy"}));
  SetDefault(pod, {"spec", "preemptionPolicy"}, "PreemptLowerPriority");
  return absl::OkStatus();
}

Status CheckPod(const ResourceType& type, const Json& pod) {
  Problems problems("");
  const Json* const spec = FindField(pod, {"spec"});
  CheckPodSpec(spec == nullptr ? Json::MakeObject() : *spec, PodChecks(), &problems);
  return InvalidUnlessGood(type, pod, problems);
}

// Of a pod only what the server lets a client change.
Status CheckPodUpdate(const ResourceType& type, const Json& old, const Json& pod) {
  const auto fixed = [](const Json& object) {
    Json spec =
        FindField(object, {"spec"}) == nullptr ? Json::MakeObject() : *FindField(object, {"spec"});
    for (const char* free :
         {"activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds"}) {
      spec.Erase(free);
    }
    for (const char* list : {"containers", "initContainers"}) {
      Json* const containers = spec.FindMutable(list);
      if (containers == nullptr || !containers->is_array()) continue;
      for (Json& container : *containers->mutable_items()) container.Erase("image");
    }
    return spec;
  };
  if (SameJson(fixed(old), fixed(pod))) return absl::OkStatus();
  return ObjectInvalid(type, NameOf(pod),
                       {{"spec",
                         "Forbidden: pod updates may not change fields other than "
                         "`spec.containers[*].image`, `spec.initContainers[*].image`, "
                         "`spec.activeDeadlineSeconds`, `spec.terminationGracePeriodSeconds` "
                         "and `spec.tolerations`",
                         "FieldValueForbidden"}});
}

}  // namespace

Status PreparePod(const ResourceType& type, const ObjectFinder& find, Json* pod) {
  DefaultPod(pod);
  WEFT_RETURN_IF_ERROR(SetPriority(type, find, pod));
  return CheckPod(type, *pod);
}

Status PreparePodUpdate(const ResourceType& type, const Json& old, Json* pod) {
  DefaultPodOfUpdate(pod);
  // What admission set stays where an update does not say it.
  for (const char* field : {"priority", "preemptionPolicy"}) {
    const Json* const held = FindField(old, {"spec", field});
    if (held != nullptr) SetDefault(pod, {"spec", field}, *held);
  }
  WEFT_RETURN_IF_ERROR(CheckPodUpdate(type, old, *pod));
  return CheckPod(type, *pod);
}

Status PreparePriorityClass(const ResourceType& type, const Json* old, Json* object) {
  Problems problems("");
  SetDefault(object, {"preemptionPolicy"}, "PreemptLowerPriority");
  SetDefault(object, {"value"}, 0);
  constexpr int64_t kHighestOfUsers = 1000000000;
  const int64_t value = IntField(*object, {"value"});
  if (value > kHighestOfUsers && NameOf(*object).rfind("system-", 0) != 0) {
    problems.Forbidden(
        *object, "value",
        absl::StrCat("maximum allowed value of a user defined priority is ", kHighestOfUsers));
  }
  if (old != nullptr && IntField(*old, {"value"}) != value)
    problems.Forbidden(*object, "value", "may not be changed in an update.");
  return InvalidUnlessGood(type, *object, problems);
}

}  // namespace weft::platform
