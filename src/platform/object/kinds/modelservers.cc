// SPDX-License-Identifier: Apache-2.0
// Servers that answer with models: a Deployment for each version of their pods, and one Service.
#include <string>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/model_server.h"
#include "platform/object/pod.h"
#include "platform/object/training_job.h"

namespace weft::platform::kinds::modelservers {
namespace {

constexpr char kSchema[] = R"yaml(
type: object
description: Servers that answer with models, as weft serve does.
required: [spec]
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata:
    type: object
    properties:
      # The Service gets this name; Deployments add eleven characters to it, their pods as many again.
      name: {type: string, maxLength: 40, pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$"}
  spec:
    type: object
    description: What shall be answered with, by how many, and how changes come.
    required: [image, models]
    properties:
      models:
        type: array
        description: Each with a folder of its own.
        minItems: 1
        items:
          type: object
          description: One model.
          required: [name, basePath]
          properties:
            name: {type: string, description: By which clients ask., minLength: 1}
            basePath: {type: string, description: "The folder of its versions, or one of a store (s3://...).", minLength: 1}
            versions:
              type: object
              description: Which are served; the latest one when left out.
              properties:
                all: {type: boolean, description: All that are there.}
                latest: {type: integer, description: So many of the latest., format: int32, minimum: 1}
                specific:
                  {type: array, description: "These, ascending.", items: {type: integer, format: int64, minimum: 0}}
            labels:
              type: object
              description: Names of versions.
              additionalProperties: {type: integer, format: int64, minimum: 0}
      image: {type: string, description: That has weft., minLength: 1}
      command: {type: array, description: "Instead of weft, serve; flags follow it.", items: {type: string}}
      flags: {type: array, description: More flags of weft serve., items: {type: string}}
      batching:
        type: object
        description: Requests are joined to batches.
        properties:
          maxBatchSize: {type: integer, description: Rows of a batch., format: int64, minimum: 1}
          timeoutMicros: {type: integer, description: How long one waits for more., format: int64, minimum: 0}
          maxEnqueuedBatches:
            {type: integer, description: "That wait; beyond them clients are told to try again.", format: int64, minimum: 1}
          threads: {type: integer, description: Batches that run side by side., format: int32, minimum: 1}
          allowedSizes:
            {type: array, description: "Batches are filled up to one of them, ascending.", items: {type: integer, format: int64, minimum: 1}}
      threads: {type: integer, description: Of each model at a server; its cores when left out., format: int32, minimum: 1}
      memoryLimit:
        {type: string, description: "Of tensors at a server, as 800MB; what the container has when left out.", pattern: "^[0-9]+ *([KMGT]?i?B?)$"}
      tlsSecret: {type: string, description: "A secret of type kubernetes.io/tls, for the ports of clients."}
      tokenSecret: {type: string, description: "A secret whose key tokens has one a line, of which clients say one."}
      insecure: {type: boolean, description: "Whoever reaches the ports may ask, in the clear: inside a private network."}
      replicas: {type: integer, description: Servers; 1 when left out., format: int32, minimum: 0, maximum: 1000, default: 1}
      autoscaling:
        type: object
        description: "How many servers there are follows from the requests that wait or run: replicas is how it begins."
        required: [maxReplicas, targetRequests]
        properties:
          minReplicas: {type: integer, description: 1 when left out., format: int32, minimum: 1, maximum: 1000}
          maxReplicas: {type: integer, description: The most., format: int32, minimum: 1, maximum: 1000}
          targetRequests: {type: number, description: "That shall wait or run at a server, on average."}
          periodSeconds: {type: integer, description: Between two looks; 15 when left out., format: int32, minimum: 1}
          scaleUpStabilizationSeconds:
            {type: integer, description: How long more must be wanted; 0 when left out., format: int32, minimum: 0}
          scaleDownStabilizationSeconds:
            {type: integer, description: How long fewer must be enough; 300 when left out., format: int32, minimum: 0}
      rollout:
        type: object
        description: How servers of another kind take over from those before.
        properties:
          steps:
            type: array
            description: "Their share of the servers in percent, step by step; [100] when left out."
            items: {type: integer, format: int32, minimum: 1, maximum: 100}
          stepSeconds: {type: integer, description: How long each step is watched., format: int32, minimum: 0}
          deadlineSeconds:
            {type: integer, description: Until the servers of a step are ready; 600 when left out., format: int32, minimum: 1}
          maxErrorPercent:
            {type: number, description: "They go when so many more of their requests fail than of the others.", minimum: 0, maximum: 100}
          maxLatencyMillis:
            {type: integer, description: They go when 99 in 100 requests take longer., format: int64, minimum: 1}
          minRequests: {type: integer, description: That they must have answered before a step is over., format: int64, minimum: 0}
      drainSeconds:
        {type: integer, description: How long one that ends answers on; 5 when left out., format: int32, minimum: 0, maximum: 600}
      env:
        type: array
        description: Variables of the servers.
        items: {type: object, required: [name], x-kubernetes-preserve-unknown-fields: true}
      resources: {type: object, description: limits and requests of a server., x-kubernetes-preserve-unknown-fields: true}
      volumes:
        type: array
        description: Volumes of the servers.
        items: {type: object, x-kubernetes-preserve-unknown-fields: true}
      volumeMounts:
        type: array
        description: Where they are mounted.
        items: {type: object, x-kubernetes-preserve-unknown-fields: true}
      nodeSelector: {type: object, description: Labels of nodes., additionalProperties: {type: string}}
      tolerations:
        type: array
        description: Of taints.
        items: {type: object, x-kubernetes-preserve-unknown-fields: true}
      affinity: {type: object, description: As a pod has it., x-kubernetes-preserve-unknown-fields: true}
      imagePullSecrets:
        type: array
        description: For the image.
        items: {type: object, x-kubernetes-preserve-unknown-fields: true}
      serviceAccountName: {type: string, description: Of the pods.}
      securityContext: {type: object, description: Of the pods., x-kubernetes-preserve-unknown-fields: true}
)yaml";

constexpr char kStatus[] = R"yaml(
type: object
description: How it goes; written by the controller.
properties:
  observedGeneration: {type: integer, description: Of the spec that this is about., format: int64}
  replicas: {type: integer, description: Servers that are there., format: int32}
  readyReplicas: {type: integer, description: Those that are ready., format: int32}
  desiredReplicas: {type: integer, description: How many there shall be., format: int32}
  selector: {type: string, description: Labels of their pods.}
  address: {type: string, description: "Of the Service: the port of gRPC."}
  revision: {type: string, description: Of the servers that are trusted.}
  failedRevision: {type: string, description: "Of the spec, when its servers were taken back."}
  rollout:
    type: object
    description: While other servers take over.
    properties:
      revision: {type: string, description: Theirs.}
      step: {type: integer, description: "Of the steps, from 1 on.", format: int32}
      percent: {type: integer, description: What the step says., format: int32}
      share: {type: string, description: What of the servers they are.}
      since: {type: string, description: When the step began.}
      readySince: {type: string, description: Since when the servers of the step are ready.}
  conditions:
    type: array
    description: "Available, Progressing and RolledBack."
    items:
      type: object
      description: What holds.
      properties:
        type: {type: string, description: Its name.}
        status: {type: string, description: True or False.}
        reason: {type: string, description: In one word.}
        message: {type: string, description: In words.}
        lastUpdateTime: {type: string, description: When it was written.}
        lastTransitionTime: {type: string, description: When the status changed.}
)yaml";

Json SchemaOf(const std::string& /*version*/) {
  Json schema = ReadSchema(kSchema);
  SetField(&schema, {"properties", "status"}, ReadSchema(kStatus));
  return schema;
}

void DefaultModelServer(const Json* old, const std::string& /*version*/, Json* object) {
  if (old == nullptr) object->Erase("status");
  const Json* const spec = object->Find("spec");
  if (spec == nullptr || !spec->is_object()) return;
  SetDefault(object, {"spec", "replicas"}, 1);
}

void CheckModelServer(const Json* /*old*/, const Json& object, Problems* problems) {
  ParseModelServer(object, problems);
}

NameProblems ServerNameProblems(absl::string_view name) {
  constexpr size_t kLongest = 40;
  if (IsDnsLabel(name) && name.size() <= kLongest) return {};
  return {absl::StrCat("allowed are 1 to ", kLongest, " of a-z, 0-9 and '-', a letter first")};
}

}  // namespace

KindSpec Spec() {
  return KindSpec("weft.dev", "v1alpha1", "modelservers", "ModelServer")
      .ShortNames({"ms"})
      .Categories({"all"})
      .HasStatus()
      .Custom()
      .Scale(".spec.replicas", ".status.replicas")
      .Named(&ServerNameProblems)
      .Defaults(&DefaultModelServer)
      .Check(&CheckModelServer)
      .Schema(&SchemaOf)
      .Count("Ready", ".status.readyReplicas", "Servers that are ready")
      .Count("Wanted", ".status.desiredReplicas", "Servers that shall be there")
      .Column("Share", ".status.rollout.share", "Of the servers that take over")
      .Column("Address", ".status.address", "Of its Service")
      .Age()
      .Wide("Revision", ".status.revision");
}

}  // namespace weft::platform::kinds::modelservers
