// SPDX-License-Identifier: Apache-2.0
// The compact job: an image, and how many parameter servers and workers of it.
#include <string>

#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/training_job.h"

namespace weft::platform::kinds::tensorflows {
namespace {

constexpr char kSchema[] = R"yaml(
type: object
description: "A training job in short: an image, and how many parameter servers and workers of it."
required: [spec]
x-kubernetes-validations:
- rule: >-
    size(self.metadata.name) + 8 + (has(self.spec.worker_count) && self.spec.worker_count > 1 ?
    size(string(self.spec.worker_count - 1)) : 1) <= 63
  message: the name is too long; NAME-worker-INDEX, as its pods and services are called, may have 63 characters
  fieldPath: .metadata.name
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata:
    type: object
    properties:
      # Services get this name.
      name: {type: string, maxLength: 63, pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$"}
  spec:
    type: object
    description: What shall run.
    required: [image]
    properties:
      image: {type: string, description: What every task runs., minLength: 1}
      ps_count:
        {type: integer, description: Parameter servers; none when left out., format: int32, minimum: 0, maximum: 10000,
         default: 0}
      worker_count:
        {type: integer, description: Workers; 1 when left out., format: int32, minimum: 1, maximum: 10000, default: 1}
      gpu_worker: {type: boolean, description: A GPU for each worker.}
      tensorboard:
        type: object
        description: A TensorBoard with one run a task.
        properties:
          active: {type: boolean, description: Whether there is one.}
          folder:
            {type: string, description: Shared by all tasks; each writes to $WEFT_SUMMARY_FOLDER., pattern: "^/"}
          image: {type: string, description: That of the tasks when left out.}
          volume:
            type: object
            description: Where the folder lies, as in a pod's volumes; on the node itself when left out.
            x-kubernetes-preserve-unknown-fields: true
        x-kubernetes-validations:
        - rule: "!has(self.active) || !self.active || has(self.folder)"
          message: a tensorboard that is active needs a folder, as in /summary
      command: {type: array, description: "The program, instead of the image's own.", items: {type: string}}
      args:
        type: array
        description: Its arguments, before --job_name, --task_index, --worker_hosts and --ps_hosts.
        items: {type: string}
      env:
        type: array
        description: Variables of the tasks.
        items: {type: object, required: [name], x-kubernetes-preserve-unknown-fields: true}
      port:
        {type: integer, description: Where tasks listen; 2222 when left out., format: int32, minimum: 1, maximum: 65535}
      resources:
        {type: object, description: limits and requests of a task., x-kubernetes-preserve-unknown-fields: true}
      volumes:
        type: array
        description: Volumes of the tasks.
        items: {type: object, x-kubernetes-preserve-unknown-fields: true}
      volume_mounts:
        type: array
        description: Where they are mounted.
        items: {type: object, x-kubernetes-preserve-unknown-fields: true}
      task_flags: {type: boolean, description: "false: no flags, TF_CONFIG alone."}
      trial:
        {type: string, description: Number of the trial of a search; task.trial of TF_CONFIG., pattern: "^[1-9][0-9]*$"}
      task_security:
        type: string
        description: "Who may call a task that runs weft: the job with its secret, or whoever reaches it."
        enum: [tls, insecure]
      insecure_clients:
        type: string
        description: Labels of pods that reach insecure tasks beside the job's own, as in app=notebook.
      restart_policy:
        type: string
        description: What happens when a task ends; ExitCode when left out.
        enum: [Always, OnFailure, Never, ExitCode]
      restart_whole_job: {type: boolean, description: A task that starts again takes all others along.}
      clean_pod_policy:
        type: string
        description: Which pods are deleted when the job has ended; Running when left out.
        enum: [All, Running, None]
      ttl_seconds_after_finished:
        {type: integer, description: The job is deleted so long after its end., format: int32, minimum: 0}
      active_deadline_seconds:
        {type: integer, description: It fails when it has run for so long., format: int32, minimum: 0}
      backoff_limit:
        {type: integer, description: It fails after so many restarts of tasks., format: int32, minimum: 0}
      suspend: {type: boolean, description: No pods while this is true.}
)yaml";

Json SchemaOf(const std::string& /*version*/) { return ReadJobSchema(kSchema); }

void DefaultTensorflow(const Json* old, const std::string& /*version*/, Json* object) {
  if (old != nullptr) return;
  object->Erase("status");
  const Json* const spec = object->Find("spec");
  if (spec == nullptr || !spec->is_object()) return;
  SetDefault(object, {"spec", "ps_count"}, 0);
  SetDefault(object, {"spec", "worker_count"}, 1);
}

}  // namespace

KindSpec Spec() {
  return KindSpec("krallistic.github.com", "v1", "tensorflows", "Tensorflow")
      .ShortNames({"tf"})
      .Categories({"all"})
      .HasStatus()
      .Custom()
      .Scale(".spec.worker_count", ".status.replicaStatuses.Worker.active")
      .Named(&JobNameProblems)
      .Defaults(&DefaultTensorflow)
      .Check(&CheckTrainingJob)
      .Schema(&SchemaOf)
      .Column("State", ".status.conditions[-1:].type", "The last condition")
      .Count("PS", ".spec.ps_count", "Parameter servers")
      .Count("Workers", ".spec.worker_count", "Workers")
      .Column("Progress", ".status.progress.percent", "Of its steps")
      .Column("Left", ".status.progress.timeLeft", "Time that it still needs")
      .Age();
}

}  // namespace weft::platform::kinds::tensorflows
