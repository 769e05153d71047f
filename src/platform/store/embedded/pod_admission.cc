// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/pod_admission.h"

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/store/api_error.h"

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

}  // namespace

Status AdmitPod(const ObjectFinder& find, Json* pod) {
  // That is said by classes of runtimes alone, which there are none of here.
  if (FindField(*pod, {"spec", "overhead"}) != nullptr) {
    return ObjectForbidden(Pods(), NameOf(*pod),
                           "pod rejected: Pod Overhead set without corresponding RuntimeClass "
                           "defined Overhead");
  }
  const std::string name = StringField(*pod, {"spec", "priorityClassName"});
  const ObjectPtr found =
      name.empty() ? DefaultClass(find) : find.get(PriorityClasses(), {"", name});
  if (!name.empty() && found == nullptr) {
    return ObjectForbidden(Pods(), NameOf(*pod),
                           absl::StrCat("no PriorityClass with name ", name, " was found"));
  }
  const int64_t priority = found == nullptr ? 0 : IntField(*found, {"value"});
  const Json* const asked = FindField(*pod, {"spec", "priority"});
  if (asked != nullptr && asked->AsInt().value_or(0) != priority) {
    return ObjectForbidden(
        Pods(), NameOf(*pod),
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

}  // namespace weft::platform
