// SPDX-License-Identifier: Apache-2.0
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::persistentvolumes {

KindSpec Spec() {
  return KindSpec("", "v1", "persistentvolumes", "PersistentVolume")
      .ShortNames({"pv"})
      .OfCluster()
      .HasStatus();
}

}  // namespace weft::platform::kinds::persistentvolumes
