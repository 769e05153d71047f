// SPDX-License-Identifier: Apache-2.0
#include "platform/object/definition.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::customresourcedefinitions {
namespace {

void CheckDefinition(const Json* /*old*/, const Json& definition, Problems* problems) {
  ReadDefinition(definition, problems);
}

}  // namespace

KindSpec Spec() {
  return KindSpec("apiextensions.k8s.io", "v1", "customresourcedefinitions",
                  "CustomResourceDefinition")
      .ShortNames({"crd", "crds"})
      .OfCluster()
      .HasStatus()
      .Check(&CheckDefinition);
}

}  // namespace weft::platform::kinds::customresourcedefinitions
