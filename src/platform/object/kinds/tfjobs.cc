// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "platform/object/definition.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/training_job.h"

namespace weft::platform::kinds::tfjobs {
namespace {

constexpr char kSchema[] = R"yaml(
type: object
description: A distributed training job in tasks that know of each other by TF_CONFIG.
required: [spec]
x-kubernetes-validations:
- rule: >-
    self.spec.tfReplicaSpecs.all(t, size(self.metadata.name) + size(t) + 2 +
    (has(self.spec.tfReplicaSpecs[t].replicas) && self.spec.tfReplicaSpecs[t].replicas > 1 ?
    size(string(self.spec.tfReplicaSpecs[t].replicas - 1)) : 1) <= 63)
  message: the name is too long; NAME-TYPE-INDEX, as its pods and services are called, may have 63 characters
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
    required: [tfReplicaSpecs]
    properties:
      tfReplicaSpecs:
        type: object
        description: "The tasks by type: Chief (or Master), Worker, PS, Evaluator."
        minProperties: 1
        maxProperties: 5
        additionalProperties:
          type: object
          description: Tasks of one type.
          required: [template]
          properties:
            replicas:
              {type: integer, description: How many; 1 when left out., format: int32, minimum: 0, maximum: 10000}
            restartPolicy:
              type: string
              description: >-
                What happens when a task ends. ExitCode: codes of 128 and more start it again, others fail the job.
                Never when left out.
              enum: [Always, OnFailure, Never, ExitCode]
            template: {}
            elasticPolicy:
              type: object
              description: >-
                Of PS: programs know maxReplicas parameter servers, which share as many pods as replicas says. When
                that changes, they go from pod to pod with what they hold.
              required: [maxReplicas]
              properties:
                minReplicas: {type: integer, description: The fewest pods; 1 when left out., format: int32, minimum: 1, maximum: 256}
                maxReplicas:
                  type: integer
                  description: How many parameter servers programs know.
                  format: int32
                  minimum: 1
                  maximum: 256
                  x-kubernetes-validations:
                  - {rule: self == oldSelf, message: maxReplicas of parameter servers does not change}
                metrics: &metrics
                  type: array
                  description: >-
                    The operator chooses the count: one metric of type External, named examples-per-cost, whose target
                    value says how much of the examples per cost that the cheapest counts bring one more must bring.
                  maxItems: 1
                  items: {type: object, x-kubernetes-preserve-unknown-fields: true}
                stabilizationWindowSeconds: &window
                  {type: integer, description: Between two such changes; 600 when left out., format: int32, minimum: 10, maximum: 86400}
          x-kubernetes-validations:
          - rule: has(self.elasticPolicy) == has(oldSelf.elasticPolicy)
            message: the elasticPolicy of parameter servers neither comes nor goes
      cleanPodPolicy: &clean
        type: string
        description: Which pods are deleted when the job has ended.
        enum: [All, Running, None]
      ttlSecondsAfterFinished: &ttl
        {type: integer, description: The job is deleted so long after its end., format: int32, minimum: 0}
      activeDeadlineSeconds: &deadline
        {type: integer, description: It fails when it has run for so long., format: int64, minimum: 0}
      backoffLimit: &backoff
        {type: integer, description: It fails after so many restarts of tasks., format: int32, minimum: 0}
      successPolicy:
        type: string
        description: >-
          Empty: the job has succeeded with its chief, or worker 0. AllWorkers: with all workers.
        enum: ["", AllWorkers]
      enableDynamicWorker:
        type: boolean
        description: "Workers may come and go: each is told only itself and the PS."
      elasticPolicy:
        type: object
        description: >-
          The workers may become fewer and more while the job runs: `kubectl scale` says how many, and one that is
          lost or preempted does not end it.
        required: [maxReplicas]
        properties:
          minReplicas:
            {type: integer, description: Fewer workers than these do not go on; 1 when left out., format: int32, minimum: 1}
          maxReplicas: {type: integer, description: The most workers., format: int32, minimum: 1, maximum: 10000}
          metrics: *metrics
          stabilizationWindowSeconds: *window
      distribution:
        type: string
        description: >-
          Who spreads a program over the tasks. auto: weft's servers do, for programs that were written for one device,
          and the operator chooses how many tasks there are if it is told what a step costs; required: the same, and
          training that cannot be spread is an error; written: the program.
        enum: [written, auto, required]
      distributionPolicy:
        type: object
        description: How the operator chooses.
        properties:
          costs: {type: string, description: "A ConfigMap whose key costs.json holds what a step costs."}
          maxWorkers: {type: integer, description: More are not tried; 16 when left out., format: int32, minimum: 1, maximum: 1024}
          maxServers: {type: integer, description: The same of parameter servers; 4., format: int32, minimum: 0, maximum: 1024}
          objective: {type: string, description: "time: the most examples a second; cost: the least money.", enum: [time, cost]}
          examples: {type: integer, description: "Examples to train on; with them the cheapest counts that keep deadline and budget are taken.", format: int64, minimum: 1}
          deadlineSeconds: {type: integer, description: From the start of the job on., format: int64, minimum: 1}
          budget: {type: string, description: 'Dollars, as "12.50".', pattern: '^[0-9]+([.][0-9]+)?$'}
          alternatives:
            type: array
            description: What workers might ask for instead of what their template does; what ends first, or costs least, is taken.
            items:
              type: object
              required: [name, resources]
              properties:
                name: {type: string, description: As status.distribution calls it.}
                resources: {type: object, description: Of the worker's first container., x-kubernetes-preserve-unknown-fields: true}
                nodeSelector: {type: object, description: Beside that of the template., additionalProperties: {type: string}}
      runPolicy:
        type: object
        description: How long it runs and what remains.
        properties:
          cleanPodPolicy: *clean
          ttlSecondsAfterFinished: *ttl
          activeDeadlineSeconds: *deadline
          backoffLimit: *backoff
          suspend: {type: boolean, description: No pods while this is true.}
          managedBy:
            type: string
            description: Another controller that cares for it.
            x-kubernetes-validations:
            - {rule: self == oldSelf, message: managedBy does not change}
            - rule: "self in ['kubeflow.org/training-operator', 'kueue.x-k8s.io/multikueue']"
              message: kubeflow.org/training-operator and kueue.x-k8s.io/multikueue are allowed
          schedulingPolicy:
            type: object
            description: "For gang schedulers: minAvailable, queue, priorityClass, minResources, scheduleTimeoutSeconds."
            properties:
              minAvailable: {type: integer, format: int32, minimum: 0}
              queue:
                type: string
                x-kubernetes-validations:
                - {rule: self == oldSelf, message: the queue does not change}
              minResources: {type: object, x-kubernetes-preserve-unknown-fields: true}
              priorityClass: {type: string}
              scheduleTimeoutSeconds: {type: integer, format: int32, minimum: 0}
    x-kubernetes-validations:
    - rule: self.tfReplicaSpecs.all(t, t.lowerAscii() in ['chief', 'master', 'worker', 'ps', 'evaluator'])
      message: Chief, Master, Worker, PS and Evaluator are allowed
      fieldPath: .tfReplicaSpecs
    - rule: self.tfReplicaSpecs.filter(t, t.lowerAscii() in ['chief', 'master']).size() <= 1
      message: Chief and Master mean the same; keep one
      fieldPath: .tfReplicaSpecs
    - rule: >-
        !has(self.elasticPolicy) || self.tfReplicaSpecs.all(t, t.lowerAscii() != 'worker' ||
        !has(self.tfReplicaSpecs[t].replicas) || self.tfReplicaSpecs[t].replicas <= self.elasticPolicy.maxReplicas
        && (!has(self.elasticPolicy.minReplicas) || self.tfReplicaSpecs[t].replicas >= self.elasticPolicy.minReplicas))
      message: the workers must be minReplicas to maxReplicas of the elasticPolicy
      fieldPath: .tfReplicaSpecs
    - rule: self.tfReplicaSpecs.all(t, !has(self.tfReplicaSpecs[t].elasticPolicy) || t.lowerAscii() == 'ps')
      message: the elasticPolicy of workers stands in spec.elasticPolicy
      fieldPath: .tfReplicaSpecs
    - rule: >-
        self.tfReplicaSpecs.all(t, !has(self.tfReplicaSpecs[t].elasticPolicy) || !has(self.tfReplicaSpecs[t].replicas)
        || self.tfReplicaSpecs[t].replicas <= self.tfReplicaSpecs[t].elasticPolicy.maxReplicas &&
        self.tfReplicaSpecs[t].replicas >= (has(self.tfReplicaSpecs[t].elasticPolicy.minReplicas) ?
        self.tfReplicaSpecs[t].elasticPolicy.minReplicas : 1))
      message: the parameter servers must be minReplicas to maxReplicas of their elasticPolicy
      fieldPath: .tfReplicaSpecs
    - rule: >-
        !has(self.distributionPolicy) || has(self.distribution) && self.distribution in ['auto', 'required'] ||
        !has(self.distributionPolicy.costs) && (has(self.elasticPolicy) && has(self.elasticPolicy.metrics) ||
        self.tfReplicaSpecs.exists(t, has(self.tfReplicaSpecs[t].elasticPolicy) &&
        has(self.tfReplicaSpecs[t].elasticPolicy.metrics)))
      message: is for jobs whose distribution is auto or required, or whose counts an elasticPolicy leaves to metrics
      fieldPath: .distributionPolicy
)yaml";

Json SchemaOf(const std::string& version) {
  Json schema = ReadJobSchema(kSchema);
  Json* at = &schema;
  for (const char* name : {"properties", "spec", "properties"}) at = at->FindMutable(name);
  if (version == "v1beta1") SetField(at, {"cleanPodPolicy", "default"}, "Running");
  SetField(at, {"tfReplicaSpecs", "additionalProperties", "properties", "template"},
           TemplateSchema());
  return schema;
}

void DefaultTfJob(const Json* old, const std::string& version, Json* object) {
  if (old != nullptr) return;
  object->Erase("status");
  // Its place under spec tells the versions apart ever after.
  if (version == "v1beta1") SetDefault(object, {"spec", "cleanPodPolicy"}, "Running");
}

}  // namespace

KindSpec Spec() {
  return KindSpec("kubeflow.org", "v1", "tfjobs", "TFJob")
      .Served({"v1", "v1beta1"})
      .Categories({"all"})
      .HasStatus()
      .Custom()
      .Scale(".spec.tfReplicaSpecs.Worker.replicas", ".status.replicaStatuses.Worker.active")
      .Named(&JobNameProblems)
      .Defaults(&DefaultTfJob)
      .Check(&CheckTrainingJob)
      .Schema(&SchemaOf)
      .Column("State", ".status.conditions[-1:].type", "The last condition")
      .Column("Progress", ".status.progress.percent", "Of its steps")
      .Column("Left", ".status.progress.timeLeft", "Time that it still needs")
      .Wide("Staleness", ".status.progress.staleness.mean")
      .Age();
}

}  // namespace weft::platform::kinds::tfjobs
