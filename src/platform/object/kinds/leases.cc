// SPDX-License-Identifier: Apache-2.0
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::leases {

KindSpec Spec() {
  return KindSpec("coordination.k8s.io", "v1", "leases", "Lease")
      .Column("Holder", ".spec.holderIdentity")
      .Age();
}

}  // namespace weft::platform::kinds::leases
