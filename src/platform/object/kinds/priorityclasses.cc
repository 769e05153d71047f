// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::priorityclasses {
namespace {

constexpr int64_t kHighestOfUsers = 1000000000;

void DefaultPriorityClass(const Json* /*old*/, const std::string& /*version*/, Json* object) {
  SetDefault(object, {"preemptionPolicy"}, "PreemptLowerPriority");
  SetDefault(object, {"value"}, 0);
}

void CheckPriorityClass(const Json* old, const Json& object, Problems* problems) {
  const int64_t value = IntField(object, {"value"});
  if (value > kHighestOfUsers && NameOf(object).rfind("system-", 0) != 0) {
    problems->Forbidden(
        object, "value",
        absl::StrCat("maximum allowed value of a user defined priority is ", kHighestOfUsers));
  }
  const std::string name = NameOf(object);
  if (absl::StartsWith(name, "system-") && name != "system-node-critical" &&
      name != "system-cluster-critical") {
    problems->Forbidden(object, "metadata.name",
                        absl::StrCat("priority class names with 'system-' prefix are reserved for "
                                     "system use only. error: ",
                                     name, " is not a known system priority class"));
  }
  const std::string policy = StringField(object, {"preemptionPolicy"});
  if (policy != "PreemptLowerPriority" && policy != "Never")
    problems->Unsupported(object, "preemptionPolicy", policy, {"PreemptLowerPriority", "Never"});
  if (old != nullptr && IntField(*old, {"value"}) != value)
    problems->Forbidden(object, "value", "may not be changed in an update.");
}

Json DefaultCell(const Json& object, absl::Time /*now*/) {
  return BoolField(object, {"globalDefault"});
}

}  // namespace

KindSpec Spec() {
  return KindSpec("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass")
      .ShortNames({"pc"})
      .OfCluster()
      .Defaults(&DefaultPriorityClass)
      .Check(&CheckPriorityClass)
      .Count("Value", ".value")
      .Column({"Global-Default", "boolean", "", "Global-Default", 0, &DefaultCell})
      .Age()
      .Column("PreemptionPolicy", ".preemptionPolicy");
}

}  // namespace weft::platform::kinds::priorityclasses
