// SPDX-License-Identifier: Apache-2.0
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::leases {
namespace {

void CheckLease(const Json* /*old*/, const Json& lease, Problems* problems) {
  const int64_t seconds = IntField(lease, {"spec", "leaseDurationSeconds"}, 1);
  if (seconds <= 0)
    problems->Invalid(lease, "spec.leaseDurationSeconds", seconds, "must be greater than 0");
  const int64_t changes = IntField(lease, {"spec", "leaseTransitions"});
  if (changes < 0) {
    problems->Invalid(lease, "spec.leaseTransitions", changes,
                      "must be greater than or equal to 0");
  }
}

}  // namespace

KindSpec Spec() {
  return KindSpec("coordination.k8s.io", "v1", "leases", "Lease")
      .Check(&CheckLease)
      .Column("Holder", ".spec.holderIdentity")
      .Age();
}

}  // namespace weft::platform::kinds::leases
