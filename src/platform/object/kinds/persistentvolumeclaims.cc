// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"

#include "platform/object/claim_checks.h"
#include "platform/object/columns.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::persistentvolumeclaims {
namespace {

// Bound to a folder when a pod first wants it.
void DefaultClaim(const Json* old, const std::string& /*version*/, Json* claim) {
  SetDefault(claim, {"spec", "volumeMode"}, "Filesystem");
  if (old != nullptr) return;
  SetField(claim, {"status"}, Json::MakeObject());
  SetField(claim, {"status", "phase"}, "Pending");
}

void CheckClaim(const Json* old, const Json& claim, Problems* problems) {
  if (old != nullptr) return CheckClaimUpdate(*old, claim, problems);
  const Json* const spec = FindField(claim, {"spec"});
  CheckClaimSpec(spec == nullptr ? Json::MakeObject() : *spec, "spec", problems);
}

Json StatusCell(const Json& claim, absl::Time /*now*/) {
  return IsTerminating(claim) ? "Terminating" : StringField(claim, {"status", "phase"});
}

Json AccessModesCell(const Json& claim, absl::Time /*now*/) {
  std::vector<std::string> words;
  const Json* const modes = FindField(claim, {"status", "accessModes"});
  if (modes == nullptr) return "";
  for (const auto& [mode, word] :
       {std::pair{"ReadWriteOnce", "RWO"}, std::pair{"ReadOnlyMany", "ROX"},
        std::pair{"ReadWriteMany", "RWX"}, std::pair{"ReadWriteOncePod", "RWOP"}}) {
    for (const Json& item : modes->items())
      if (item == Json(mode)) words.push_back(word);
  }
  return absl::StrJoin(words, ",");
}

Json ModeCell(const Json& claim, absl::Time /*now*/) {
  const std::string mode = StringField(claim, {"spec", "volumeMode"});
  return mode.empty() ? "<unset>" : mode;
}

Json UnsetCell(const Json& /*claim*/, absl::Time /*now*/) { return "<unset>"; }

}  // namespace

KindSpec Spec() {
  return KindSpec("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
      .ShortNames({"pvc"})
      .HasStatus()
      .Defaults(&DefaultClaim)
      .Check(&CheckClaim)
      .Column("Status", &StatusCell)
      .Column("Volume", ".spec.volumeName")
      .Column("Capacity", ".status.capacity.storage")
      .Column("Access Modes", &AccessModesCell)
      .Column("StorageClass", ".spec.storageClassName")
      .Column("VolumeAttributesClass", &UnsetCell)
      .Age()
      .Wide("VolumeMode", &ModeCell);
}

}  // namespace weft::platform::kinds::persistentvolumeclaims
