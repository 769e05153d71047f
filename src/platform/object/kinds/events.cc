// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "platform/object/event_columns.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::events {
namespace {

void CheckEvent(const Json* /*old*/, const Json& event, Problems* problems) {
  const std::string of = StringField(event, {"involvedObject", "namespace"});
  if (of.empty() || of == NamespaceOf(event)) return;
  problems->Invalid(event, "involvedObject.namespace", of, "does not match event.namespace");
}

}  // namespace

KindSpec Spec() {
  return WithEventColumns(
      KindSpec("", "v1", "events", "Event")
          .ShortNames({"ev"})
          .Check(&CheckEvent)
          .SelectableBy({"involvedObject.kind", "involvedObject.namespace", "involvedObject.name",
                         "involvedObject.uid", "involvedObject.apiVersion",
                         "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
                         "reportingComponent", "source", "type"}));
}

}  // namespace weft::platform::kinds::events
