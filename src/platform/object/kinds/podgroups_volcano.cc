// SPDX-License-Identifier: Apache-2.0
// Of gang schedulers: pods that are admitted together.
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::podgroups_volcano {

KindSpec Spec() {
  return KindSpec("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
      .ShortNames({"pg"})
      .HasStatus()
      .Custom()
      .Column("Status", ".status.phase", "Where it stands")
      .Count("MinMember", ".spec.minMember", "Pods that start together")
      .Age();
}

}  // namespace weft::platform::kinds::podgroups_volcano
