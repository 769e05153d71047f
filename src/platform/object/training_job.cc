// SPDX-License-Identifier: Apache-2.0
#include "platform/object/training_job.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/object/pod.h"
#include "platform/object/tfjob.h"

namespace weft::platform {
namespace {

constexpr char kStatus[] = R"yaml(
type: object
description: How it goes; written by the controller.
properties:
  conditions:
    type: array
    description: Oldest first.
    items:
      type: object
      description: A state that the job is in or was in.
      properties:
        type:
          {type: string, description: "Created, Running, Restarting, Suspended, Succeeded, Failed, or ReplicaFailure while pods are refused."}
        status: {type: string, description: True or False.}
        reason: {type: string, description: In one word.}
        message: {type: string, description: In words.}
        lastUpdateTime: {type: string, description: When it was written.}
        lastTransitionTime: {type: string, description: When the status changed.}
  replicaStatuses:
    type: object
    description: By type.
    additionalProperties:
      type: object
      description: Tasks of one type.
      properties:
        active: {type: integer, description: Waiting or running.}
        succeeded: {type: integer, description: Ended with 0.}
        failed: {type: integer, description: Ended with another code.}
        selector: {type: string, description: Labels of their pods.}
  progress:
    type: object
    description: How far its chief has come.
    properties:
      task: {type: string, description: Who tells.}
      step: {type: integer, description: Steps that are done.}
      steps: {type: integer, description: Of so many.}
      percent: {type: string, description: The same as a share.}
      timeLeft: {type: string, description: At the speed so far.}
      lostSteps: {type: integer, description: "Steps done twice, as it began again from a checkpoint."}
      staleness:
        type: object
        description: Updates of others between what a worker reads and its own.
        properties:
          mean: {type: number, description: Of the last seconds.}
          highest: {type: integer, description: Of the same.}
          updates: {type: integer, description: Out of so many.}
      metrics:
        {type: object, description: "The latest, by name.", additionalProperties: {type: number, description: Value}}
      time: {type: string, description: When it was told.}
  packing:
    type: object
    description: Which tasks share pods.
    properties:
      pods: {type: array, description: Tasks of one pod., items: {type: string, description: "worker-0,..."}}
      reason: {type: string, description: "Why, in words."}
  servers:
    type: object
    description: Parameter servers whose number changes.
    properties:
      tasks: {type: integer, description: What programs know.}
      pods: {type: integer, description: What they share.}
      moving: {type: boolean, description: Some go from pod to pod.}
  distribution:
    type: object
    description: How many tasks the operator chose.
    properties:
      form: {type: string, description: "ps, single, or written: as the job says."}
      workers: {type: integer, description: The chief among them.}
      servers: {type: integer, description: Parameter servers.}
      stepSeconds: {type: string, description: What a step is expected to take.}
      graph: {type: string, description: Whose costs those are.}
      reason: {type: string, description: "Why, in words."}
  startTime: {type: string, description: When the controller took it up.}
  completionTime: {type: string, description: When it ended.}
  lastReconcileTime: {type: string, description: When the controller last looked.}
)yaml";

}  // namespace

NameProblems JobNameProblems(absl::string_view name) {
  if (IsDnsLabel(name)) return {};
  return {"allowed are 1 to 63 of a-z, 0-9 and '-', a letter first"};
}

void CheckTrainingJob(const Json* old, const Json& job, Problems* problems) {
  CheckImages(ParseTfJob(job, problems), job, problems);
  if (old != nullptr) CheckJobUpdate(*old, job, problems);
}

// Texts of this program: what is wrong with one shows in the tests.
Json ReadSchema(absl::string_view yaml) {
  StatusOr<std::vector<Json>> documents = ParseYaml(yaml, "a kind's schema");
  if (documents.ok() && documents->size() == 1) return std::move((*documents)[0]);
  WEFT_LOG(ERROR) << "The schema of a kind cannot be read: " << documents.status().message();
  return Json::MakeObject();
}

Json ReadJobSchema(absl::string_view yaml) {
  Json schema = ReadSchema(yaml);
  SetField(&schema, {"properties", "status"}, ReadSchema(kStatus));
  return schema;
}

}  // namespace weft::platform
