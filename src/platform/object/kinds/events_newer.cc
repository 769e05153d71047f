// SPDX-License-Identifier: Apache-2.0
// Events as events.k8s.io has them: the same objects as the core group's, under other names.
#include <string>
#include <utility>

#include "platform/object/event_columns.h"
#include "platform/object/kind_spec.h"

namespace weft::platform::kinds::events_newer {
namespace {

Json Text(const char* description, const char* type = "string") {
  Json field;
  field.Set("type", type);
  field.Set("description", description);
  return field;
}

Json Schema(const std::string& /*version*/) {
  Json schema = Text("What happened to an object, as some controller tells it.", "object");
  const std::pair<const char*, Json> fields[] = {
      {"action", Text("What was done, or failed.")},
      {"deprecatedCount", Text("How often it happened, by older writers.", "integer")},
      {"deprecatedFirstTimestamp", Text("When first, by older writers.")},
      {"deprecatedLastTimestamp", Text("When last, by older writers.")},
      {"deprecatedSource", Text("Who tells it, by older writers.", "object")},
      {"eventTime", Text("When it happened first.")},
      {"note", Text("What happened, for people.")},
      {"reason", Text("Why, in one word.")},
      {"regarding", Text("The object that it is about.", "object")},
      {"related", Text("Another object that has to do with it.", "object")},
      {"reportingController", Text("Who tells it, such as example.com/controller.")},
      {"reportingInstance", Text("Which of them.")},
      {"series", Text("count and lastObservedTime, where it happened again.", "object")},
      {"type", Text("Normal or Warning.")}};
  Json properties = Json::MakeObject();
  for (const auto& [name, field] : fields) properties.Set(name, field);
  schema.Set("properties", std::move(properties));
  return schema;
}

}  // namespace

KindSpec Spec() {
  return WithEventColumns(
      KindSpec("events.k8s.io", "v1", "events", "Event")
          .ShortNames({"ev"})
          .Schema(&Schema)
          .SelectableBy({"regarding.kind", "regarding.namespace", "regarding.name", "regarding.uid",
                         "regarding.apiVersion", "regarding.resourceVersion", "regarding.fieldPath",
                         "reason", "reportingController", "type"}));
}

}  // namespace weft::platform::kinds::events_newer
