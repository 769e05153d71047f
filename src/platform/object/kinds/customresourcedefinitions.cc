// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "platform/object/definition.h"
#include "platform/object/definition_checks.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::customresourcedefinitions {
namespace {

void CheckDefinition(const Json* old, const Json& definition, Problems* problems) {
  ReadDefinition(definition, problems);
  // What was taken before is not refused for what it always had.
  if (old == nullptr || !SameJson(*FindField(*old, {"spec"}), *FindField(definition, {"spec"})))
    CheckDefinitionParts(definition, problems);
}

void Default(const Json* /*old*/, const std::string& /*version*/, Json* definition) {
  DefaultDefinition(definition);
}

}  // namespace

KindSpec Spec() {
  return KindSpec("apiextensions.k8s.io", "v1", "customresourcedefinitions",
                  "CustomResourceDefinition")
      .ShortNames({"crd", "crds"})
      .OfCluster()
      .HasStatus()
      .Defaults(&Default)
      .Check(&CheckDefinition);
}

}  // namespace weft::platform::kinds::customresourcedefinitions
