// SPDX-License-Identifier: Apache-2.0
// Of gang schedulers: pods that are admitted together.
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::podgroups_plugins {

KindSpec Spec() {
  return KindSpec("scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup")
      .ShortNames({"pg"})
      .HasStatus()
      .Custom()
      .Column("Phase", ".status.phase", "Where it stands")
      .Count("MinMember", ".spec.minMember", "Pods that start together")
      .Age();
}

}  // namespace weft::platform::kinds::podgroups_plugins
