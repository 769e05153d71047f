// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/workload_checks.h"

namespace weft::platform::kinds::statefulsets {
namespace {

void DefaultStatefulSet(const Json* old, const std::string& /*version*/, Json* object) {
  DefaultWorkload(old, object);
  SetDefault(object, {"spec", "replicas"}, 1);
  SetDefault(object, {"spec", "podManagementPolicy"}, "OrderedReady");
  SetDefault(object, {"spec", "updateStrategy", "type"}, "RollingUpdate");
  if (StringField(*object, {"spec", "updateStrategy", "type"}) == "RollingUpdate")
    SetDefault(object, {"spec", "updateStrategy", "rollingUpdate", "partition"}, 0);
  SetDefault(object, {"spec", "revisionHistoryLimit"}, 10);
  for (const char* when : {"whenDeleted", "whenScaled"})
    SetDefault(object, {"spec", "persistentVolumeClaimRetentionPolicy", when}, "Retain");
}

// Volumes of its pods may come from its claims: they are checked when they are made.
void CheckStatefulSet(const Json* /*old*/, const Json& object, Problems* problems) {
  CheckReplicas(object, problems);
  CheckSelectorFits(object, "statefulset", problems);
  const std::string policy = StringField(object, {"spec", "podManagementPolicy"});
  if (policy != "OrderedReady" && policy != "Parallel") {
    problems->Invalid(object, "spec.podManagementPolicy", policy,
                      "must be 'OrderedReady' or 'Parallel'");
  }
  CheckTemplateMetadata(object, problems);
  CheckRestartsAlways(object, problems);
}

}  // namespace

KindSpec Spec() {
  return KindSpec("apps", "v1", "statefulsets", "StatefulSet")
      .ShortNames({"sts"})
      .Categories({"all"})
      .HasStatus()
      .Scale(".spec.replicas", ".status.replicas")
      .Defaults(&DefaultStatefulSet)
      .Check(&CheckStatefulSet)
      .Column("Ready", &ReadyCell)
      .Age()
      .Wide("Containers", &ContainersCell)
      .Wide("Images", &ImagesCell);
}

}  // namespace weft::platform::kinds::statefulsets
