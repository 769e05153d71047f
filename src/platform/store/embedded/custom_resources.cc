// SPDX-License-Identifier: Apache-2.0
#include "platform/store/embedded/custom_resources.h"

#include <utility>

#include "platform/object/definition.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"

namespace weft::platform {
namespace {

Json Condition(const char* type, const char* reason, const char* message, absl::Time now) {
  Json condition;
  condition.Set("type", type);
  condition.Set("status", "True");
  condition.Set("reason", reason);
  condition.Set("message", message);
  condition.Set("lastTransitionTime", FormatObjectTime(now));
  return condition;
}

}  // namespace

bool IsDefinition(const ResourceType& type) { return type == Definitions(); }

void SetDefinitionStatus(absl::Time now, Json* definition) {
  Json status;
  status.Set("conditions",
             Json(Json::Array{Condition("NamesAccepted", "NoConflicts", "no conflicts found", now),
                              Condition("Established", "InitialNamesAccepted",
                                        "the initial names have been accepted", now)}));
  if (const Json* const names = FindField(*definition, {"spec", "names"}))
    status.Set("acceptedNames", *names);
  Json stored = Json::MakeArray();
  if (const Json* const versions = FindField(*definition, {"spec", "versions"})) {
    for (const Json& version : versions->items()) {
      if (BoolField(version, {"storage"})) stored.Append(StringField(version, {"name"}));
    }
  }
  status.Set("storedVersions", std::move(stored));
  definition->Set("status", std::move(status));
}

}  // namespace weft::platform
