// SPDX-License-Identifier: Apache-2.0
#include "platform/object/columns.h"
#include "platform/object/data_checks.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::configmaps {
namespace {

void CheckConfigMap(const Json* old, const Json& map, Problems* problems) {
  CheckData(old, map, "", problems);
}

}  // namespace

KindSpec Spec() {
  return KindSpec("", "v1", "configmaps", "ConfigMap")
      .ShortNames({"cm"})
      .Check(&CheckConfigMap)
      .Column({"Data", "integer", "", "Data", 0, &DataCountCell})
      .Age();
}

}  // namespace weft::platform::kinds::configmaps
