// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/metadata_checks.h"
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

// Without what may change.
Json FixedSpec(const Json& object) {
  const Json* const spec = FindField(object, {"spec"});
  Json fixed = spec == nullptr ? Json::MakeObject() : *spec;
  for (const char* free :
       {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy", "minReadySeconds"})
    fixed.Erase(free);
  return fixed;
}

void CheckNotBelowZero(const Json& object, FieldPath field, const char* path, Problems* problems) {
  const int64_t held = IntField(object, field);
  if (held < 0) problems->Invalid(object, path, held, "must be greater than or equal to 0");
}

// Volumes of its pods may come from its claims: they are checked when they are made.
void CheckStatefulSet(const Json* old, const Json& object, Problems* problems) {
  CheckReplicas(object, problems);
  CheckSelectorFits(object, "statefulset", problems);
  const std::string policy = StringField(object, {"spec", "podManagementPolicy"});
  if (policy != "OrderedReady" && policy != "Parallel") {
    problems->Invalid(object, "spec.podManagementPolicy", policy,
                      "must be 'OrderedReady' or 'Parallel'");
  }
  CheckCount(object, "revisionHistoryLimit", problems);
  CheckNotBelowZero(object, {"spec", "updateStrategy", "rollingUpdate", "partition"},
                    "spec.updateStrategy.rollingUpdate.partition", problems);
  CheckNotBelowZero(object, {"spec", "ordinals", "start"}, "spec.ordinals.start", problems);
  if (const Json* const kept =
          FindField(object, {"spec", "persistentVolumeClaimRetentionPolicy"})) {
    for (const char* when : {"whenDeleted", "whenScaled"})
      CheckWord(*kept, "spec.persistentVolumeClaimRetentionPolicy", when, {"Retain", "Delete"},
                problems);
  }
  CheckTemplateMetadata(object, problems);
  CheckRestartsAlways(object, problems);
  if (old == nullptr || SameJson(FixedSpec(*old), FixedSpec(object))) return;
  problems->Forbidden(object, "spec",
                      "updates to statefulset spec for fields other than 'replicas', 'ordinals', "
                      "'template', 'updateStrategy', 'revisionHistoryLimit', "
                      "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
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
