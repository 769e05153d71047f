// SPDX-License-Identifier: Apache-2.0
// Katib's trials: one try of an experiment.
#include <string>

#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/training_job.h"

namespace weft::platform::kinds::trials {
namespace {

constexpr char kSchema[] = R"yaml(
type: object
description: One try of an experiment; made by its controller.
required: [spec]
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata: {type: object}
  spec:
    type: object
    description: What it tries.
    x-kubernetes-preserve-unknown-fields: true
    properties:
      parameterAssignments:
        type: array
        description: The values that it has.
        items:
          type: object
          description: Of one parameter.
          required: [name]
          properties:
            name: {type: string, description: Of the parameter.}
            value: {type: string, description: As the program reads it.}
      runSpec:
        {type: object, description: The object that it runs., x-kubernetes-preserve-unknown-fields: true}
      retainRun: {type: boolean, description: The object stays after its end.}
      primaryContainerName: {type: string, description: Whose metrics count.}
      successCondition: {type: string, description: Finds something in the object when it has succeeded.}
      failureCondition: {type: string, description: The same when it has failed.}
)yaml";

Json SchemaOf(const std::string& /*version*/) {
  Json schema = ReadJobSchema(kSchema);
  SetField(&schema, {"properties", "status", "description"},
           "How it goes; written by the controller.");
  return schema;
}

void DefaultTrial(const Json* old, const std::string& /*version*/, Json* object) {
  if (old == nullptr) object->Erase("status");
}

void CheckTrial(const Json* /*old*/, const Json& object, Problems* problems) {
  for (const char* field : {"apiVersion", "kind"}) {
    if (StringField(object, {"spec", "runSpec", field}).empty())
      problems->Required(object, std::string("spec.runSpec.") + field);
  }
}

}  // namespace

KindSpec Spec() {
  return KindSpec("kubeflow.org", "v1beta1", "trials", "Trial")
      .Served({"v1beta1", "v1alpha3"})
      .Categories({"all", "kubeflow", "katib"})
      .HasStatus()
      .Custom()
      .Defaults(&DefaultTrial)
      .Check(&CheckTrial)
      .Schema(&SchemaOf)
      .Column("Type", ".status.conditions[-1:].type", "The last condition")
      .Column("Status", ".status.conditions[-1:].status", "Whether it is true")
      .Age();
}

}  // namespace weft::platform::kinds::trials
