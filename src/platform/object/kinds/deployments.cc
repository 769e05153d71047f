// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/workload_checks.h"

namespace weft::platform::kinds::deployments {
namespace {

void DefaultDeployment(const Json* old, const std::string& /*version*/, Json* object) {
  DefaultWorkload(old, object);
  SetDefault(object, {"spec", "replicas"}, 1);
  SetDefault(object, {"spec", "strategy", "type"}, "RollingUpdate");
  if (StringField(*object, {"spec", "strategy", "type"}) == "RollingUpdate") {
    SetDefault(object, {"spec", "strategy", "rollingUpdate", "maxUnavailable"}, "25%");
    SetDefault(object, {"spec", "strategy", "rollingUpdate", "maxSurge"}, "25%");
  }
  SetDefault(object, {"spec", "revisionHistoryLimit"}, 10);
  SetDefault(object, {"spec", "progressDeadlineSeconds"}, 600);
}

// How many pods more or less than wanted, while they change: a number or "25%".
void CheckRollingUpdate(const Json& object, Problems* problems) {
  const Json* const update = FindField(object, {"spec", "strategy", "rollingUpdate"});
  if (update == nullptr) return;
  constexpr char kPath[] = "spec.strategy.rollingUpdate";
  if (StringField(object, {"spec", "strategy", "type"}) == "Recreate") {
    return problems->Forbidden(object, kPath,
                               "may not be specified when strategy `type` is 'Recreate'");
  }
  int zeros = 0;
  for (const char* field : {"maxUnavailable", "maxSurge"}) {
    const Json* const held = FindField(*update, {field});
    if (held == nullptr) continue;
    const std::string at = absl::StrCat(kPath, ".", field);
    const std::string text = held->AsString().value_or("");
    const bool is_part = text.size() > 1 && text.back() == '%' &&
                         text.find_first_not_of("0123456789") == text.size() - 1;
    if (held->is_string() && !is_part) {
      problems->InvalidAs(
          object, at, absl::StrCat("intstr.IntOrString{Type:1, IntVal:0, StrVal:\"", text, "\"}"),
          "a valid percent string must be a numeric string followed by an ending "
          "'%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')");
    }
    const int64_t count = held->AsInt().value_or(0);
    if (count < 0) problems->Invalid(object, at, count, "must be greater than or equal to 0");
    zeros += text == "0%" || (held->is_int() && count == 0) ? 1 : 0;
  }
  if (zeros == 2) {
    problems->InvalidAs(object, absl::StrCat(kPath, ".maxUnavailable"),
                        "intstr.IntOrString{Type:0, IntVal:0, StrVal:\"\"}",
                        "may not be 0 when `maxSurge` is 0");
  }
}

void CheckDeployment(const Json* old, const Json& object, Problems* problems) {
  CheckReplicas(object, problems);
  CheckSelectorFits(object, "deployment", problems);
  const std::string strategy = StringField(object, {"spec", "strategy", "type"});
  if (strategy != "Recreate" && strategy != "RollingUpdate")
    problems->Unsupported(object, "spec.strategy", strategy, {"Recreate", "RollingUpdate"});
  CheckRollingUpdate(object, problems);
  CheckCount(object, "revisionHistoryLimit", problems);
  CheckCount(object, "progressDeadlineSeconds", problems);
  const int64_t deadline = IntField(object, {"spec", "progressDeadlineSeconds"});
  if (deadline <= IntField(object, {"spec", "minReadySeconds"})) {
    problems->Invalid(object, "spec.progressDeadlineSeconds", deadline,
                      "must be greater than minReadySeconds");
  }
  CheckTemplatePod(object, problems);
  CheckRestartsAlways(object, problems);
  if (old != nullptr) CheckFixed(*old, object, "selector", problems);
}

}  // namespace

KindSpec Spec() {
  return KindSpec("apps", "v1", "deployments", "Deployment")
      .ShortNames({"deploy"})
      .Categories({"all"})
      .HasStatus()
      .Scale(".spec.replicas", ".status.replicas")
      .Defaults(&DefaultDeployment)
      .Check(&CheckDeployment)
      .Column("Ready", &ReadyCell)
      .Count("Up-to-date", ".status.updatedReplicas")
      .Count("Available", ".status.availableReplicas")
      .Age()
      .Wide("Containers", &ContainersCell)
      .Wide("Images", &ImagesCell)
      .Wide("Selector", &SelectorCell);
}

}  // namespace weft::platform::kinds::deployments
