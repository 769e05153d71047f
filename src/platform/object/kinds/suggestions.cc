// SPDX-License-Identifier: Apache-2.0
// Katib's suggestions: what an experiment has been told to try. Those that became trials are no
// longer in it, so that it stays small however many trials there are.
#include <string>

#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/training_job.h"

namespace weft::platform::kinds::suggestions {
namespace {

constexpr char kSchema[] = R"yaml(
type: object
description: What an experiment shall try next; made by its controller.
required: [spec]
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  spec:
    type: object
    description: What is asked for.
    x-kubernetes-preserve-unknown-fields: true
    properties:
      requests: {type: integer, description: How many were asked for., format: int32, minimum: 0}
      resumePolicy: {type: string, description: That of the experiment.}
)yaml";

Json SchemaOf(const std::string& /*version*/) {
  Json schema = ReadJobSchema(kSchema);
  SetField(&schema, {"properties", "status", "description"}, "What was answered.");
  return schema;
}

void DefaultSuggestion(const Json* old, const std::string& /*version*/, Json* object) {
  if (old == nullptr) object->Erase("status");
}

}  // namespace

KindSpec Spec() {
  return KindSpec("kubeflow.org", "v1beta1", "suggestions", "Suggestion")
      .Served({"v1beta1", "v1alpha3"})
      .Categories({"all", "kubeflow", "katib"})
      .HasStatus()
      .Custom()
      .Defaults(&DefaultSuggestion)
      .Schema(&SchemaOf)
      .Column("Type", ".status.conditions[-1:].type", "The last condition")
      .Column("Status", ".status.conditions[-1:].status", "Whether it is true")
      .Column("Requested", ".spec.requests", "Suggestions that were asked for")
      .Column("Assigned", ".status.suggestionCount", "Suggestions that were made")
      .Age();
}

}  // namespace weft::platform::kinds::suggestions
