// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/workload_checks.h"

namespace weft::platform::kinds::replicasets {
namespace {

void DefaultReplicaSet(const Json* old, const std::string& /*version*/, Json* object) {
  DefaultWorkload(old, object);
  SetDefault(object, {"spec", "replicas"}, 1);
}

void CheckReplicaSet(const Json* old, const Json& object, Problems* problems) {
  CheckReplicas(object, problems);
  CheckSelectorFits(object, "replicaset", problems);
  CheckTemplatePod(object, problems);
  CheckRestartsAlways(object, problems);
  if (old != nullptr) CheckFixed(*old, object, "selector", problems);
}

}  // namespace

KindSpec Spec() {
  return KindSpec("apps", "v1", "replicasets", "ReplicaSet")
      .ShortNames({"rs"})
      .Categories({"all"})
      .HasStatus()
      .Scale(".spec.replicas", ".status.replicas")
      .SelectableBy({"status.replicas"})
      .Defaults(&DefaultReplicaSet)
      .Check(&CheckReplicaSet)
      .Count("Desired", ".spec.replicas")
      .Count("Current", ".status.replicas")
      .Count("Ready", ".status.readyReplicas")
      .Age()
      .Wide("Containers", &ContainersCell)
      .Wide("Images", &ImagesCell)
      .Wide("Selector", &SelectorCell);
}

}  // namespace weft::platform::kinds::replicasets
