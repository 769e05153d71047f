// SPDX-License-Identifier: Apache-2.0
#include <string>

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

void CheckDeployment(const Json* old, const Json& object, Problems* problems) {
  CheckReplicas(object, problems);
  CheckSelectorFits(object, "deployment", problems);
  const std::string strategy = StringField(object, {"spec", "strategy", "type"});
  if (strategy != "Recreate" && strategy != "RollingUpdate")
    problems->Unsupported(object, "spec.strategy", strategy, {"Recreate", "RollingUpdate"});
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
