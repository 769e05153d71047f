// SPDX-License-Identifier: Apache-2.0
#include "platform/object/event_columns.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::events {

KindSpec Spec() {
  return WithEventColumns(
      KindSpec("", "v1", "events", "Event")
          .ShortNames({"ev"})
          .SelectableBy({"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
                         "involvedObject.uid", "involvedObject.apiVersion",
                         "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
                         "reportingComponent", "source", "type"}));
}

}  // namespace weft::platform::kinds::events
