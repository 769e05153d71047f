// SPDX-License-Identifier: Apache-2.0
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::namespaces {
namespace {

void DefaultNamespace(const Json* old, const std::string& /*version*/, Json* object) {
  if (old != nullptr) return;
  SetField(object, {"metadata", "labels", "kubernetes.io/metadata.name"}, NameOf(*object));
  SetField(object, {"spec", "finalizers"}, Json(Json::Array{Json("kubernetes")}));
  SetField(object, {"status", "phase"}, "Active");
}

}  // namespace

KindSpec Spec() {
  return KindSpec("", "v1", "namespaces", "Namespace")
      .ShortNames({"ns"})
      .OfCluster()
      .HasStatus()
      .Named(&LabelNameProblems)
      .SelectableBy({"status.phase"})
      .Defaults(&DefaultNamespace)
      .Column("Status", ".status.phase")
      .Age();
}

}  // namespace weft::platform::kinds::namespaces
