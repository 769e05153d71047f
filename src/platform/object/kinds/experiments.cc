// SPDX-License-Identifier: Apache-2.0
// Katib's experiments: a search for the best parameters of whatever runs as an object.
#include <string>

#include "platform/object/experiment.h"
#include "platform/object/fields.h"
#include "platform/object/kind_spec.h"
#include "platform/object/training_job.h"

namespace weft::platform::kinds::experiments {
namespace {

constexpr char kSchema[] = R"yaml(
type: object
description: A search for the best parameters, with a trial for each try.
required: [spec]
properties:
  apiVersion: {type: string}
  kind: {type: string}
  metadata:
    type: object
    properties:
      # Trials add nine characters to it.
      name: {type: string, maxLength: 40, pattern: "^[a-z]([-a-z0-9]*[a-z0-9])?$"}
  spec:
    type: object
    description: What shall be searched.
    required: [objective, algorithm, parameters, trialTemplate]
    properties:
      parallelTrialCount: {type: integer, description: Trials at a time; 3 when left out., format: int32, minimum: 1}
      maxTrialCount: {type: integer, description: It ends with so many trials., format: int32, minimum: 1}
      maxFailedTrialCount: {type: integer, description: It fails with so many failed trials., format: int32, minimum: 0}
      maxSeconds: {type: integer, description: No trial begins later than this., format: int64, minimum: 1}
      resumePolicy:
        type: string
        description: Whether a larger maxTrialCount lets it go on after its end.
        enum: [Never, LongRunning, FromVolume]
      objective:
        type: object
        description: What good is.
        required: [type, objectiveMetricName]
        properties:
          type: {type: string, description: The direction., enum: [minimize, maximize]}
          goal: {type: number, description: It ends when a trial is as good as this.}
          objectiveMetricName: {type: string, description: The metric that counts., minLength: 1}
          additionalMetricNames:
            {type: array, description: Metrics that are noted too., items: {type: string}}
          metricStrategies:
            type: array
            description: Which of the reported values counts; the best one when left out.
            items:
              type: object
              description: For one metric.
              required: [name]
              properties:
                name: {type: string, description: Of the metric.}
                value: {type: string, description: Which value., enum: [min, max, latest]}
          additionalObjectives:
            type: array
            description: "An addition of weft's: metrics that shall be good too."
            items:
              type: object
              description: One of them.
              required: [metricName, type]
              properties:
                metricName: {type: string, description: Of additionalMetricNames.}
                type: {type: string, description: The direction., enum: [minimize, maximize]}
          constraints:
            type: array
            description: "An addition of weft's: what a trial has to keep to count as good."
            items:
              type: object
              description: One of them.
              required: [metricName]
              properties:
                metricName: {type: string, description: Of additionalMetricNames.}
                min: {type: number, description: At least this.}
                max: {type: number, description: At most this.}
      algorithm: &algorithm
        type: object
        description: Who suggests what to try.
        required: [algorithmName]
        properties:
          algorithmName: {type: string, description: "random, grid, sobol, tpe, bayesianoptimization, ...", minLength: 1}
          algorithmSettings:
            type: array
            description: As the algorithm knows them.
            items:
              type: object
              description: One setting.
              required: [name]
              properties:
                name: {type: string, description: Of the setting.}
                value: {type: string, description: Its value.}
      earlyStopping:
        <<: *algorithm
        description: Which trials end before their time.
      parameters:
        type: array
        description: What is varied.
        minItems: 1
        items:
          type: object
          description: One parameter.
          required: [name, parameterType, feasibleSpace]
          properties:
            name: {type: string, description: "As trials get it.", minLength: 1}
            parameterType: {type: string, description: What values it has., enum: [double, int, discrete, categorical]}
            feasibleSpace:
              type: object
              description: "min, max, step and distribution; or a list."
              x-kubernetes-preserve-unknown-fields: true
            condition:
              type: object
              description: Only tried where another parameter has one of these values.
              required: [parameter, values]
              properties:
                parameter: {type: string, description: A parameter before this.}
                values: {type: array, description: Its values., items: {type: string}}
      metricsCollectorSpec:
        type: object
        description: Where metrics come from; the output of the primary container when left out.
        x-kubernetes-preserve-unknown-fields: true
      trialTemplate:
        type: object
        description: What a trial runs.
        properties:
          retain: {type: boolean, description: What ran stays after its end.}
          trialSpec:
            type: object
            description: "The object, with ${trialParameters.NAME} in its texts."
            x-kubernetes-preserve-unknown-fields: true
          goTemplate:
            type: object
            description: "As v1alpha3 has it: rawTemplate or templateSpec."
            x-kubernetes-preserve-unknown-fields: true
          configMap:
            type: object
            description: Where the template stands instead.
            properties:
              configMapName: {type: string, description: Its name.}
              configMapNamespace: {type: string, description: Its namespace.}
              templatePath: {type: string, description: Its key.}
          trialParameters:
            type: array
            description: What the template's placeholders stand for.
            items:
              type: object
              description: One of them.
              required: [name, reference]
              properties:
                name: {type: string, description: In the template.}
                description: {type: string, description: For people.}
                reference: {type: string, description: "A parameter, or ${trialSpec.Name} and its kin."}
          primaryPodLabels:
            {type: object, description: Of the pod whose metrics count., additionalProperties: {type: string}}
          primaryContainerName: {type: string, description: Whose metrics count.}
          successCondition: {type: string, description: A GJSON query that finds something when it has succeeded.}
          failureCondition: {type: string, description: The same when it has failed.}
)yaml";

Json SchemaOf(const std::string& /*version*/) {
  Json schema = ReadJobSchema(kSchema);
  SetField(&schema, {"properties", "status", "description"},
           "How it goes; written by the controller.");
  return schema;
}

void DefaultExperiment(const Json* old, const std::string& /*version*/, Json* object) {
  if (old == nullptr) object->Erase("status");
  const Json* const spec = object->Find("spec");
  if (spec == nullptr || !spec->is_object()) return;
  SetDefault(object, {"spec", "resumePolicy"}, "Never");
}

// What may change once it is there: how many trials, as in Katib.
void CheckChange(const Json& old, const Json& object, Problems* problems) {
  Json before = *old.Find("spec"), after = *object.Find("spec");
  if (SameJson(before, after)) return;
  if (IsConditionTrue(old, "Failed") || IsConditionTrue(old, "Succeeded")) {
    const bool may =
        StringField(before, {"resumePolicy"}) != "Never" && IsConditionTrue(old, "Succeeded") &&
        StringField(*ConditionOf(old, "Succeeded"), {"reason"}) == "ExperimentMaxTrialsReached";
    if (!may) {
      problems->Invalid(object, "spec.resumePolicy", StringField(before, {"resumePolicy"}),
                        "Experiment can be restarted if it is in succeeded state by reaching max "
                        "trials and spec.resumePolicy = LongRunning or spec.resumePolicy = "
                        "FromVolume, when experiment is completed");
    }
  }
  for (const char* field :
       {"parallelTrialCount", "maxTrialCount", "maxFailedTrialCount", "maxSeconds"}) {
    before.Erase(field);
    after.Erase(field);
  }
  if (SameJson(before, after)) return;
  problems->Forbidden(object, "spec",
                      "only spec.parallelTrialCount, spec.maxTrialCount, spec.maxFailedTrialCount "
                      "and spec.maxSeconds are editable");
}

void CheckExperiment(const Json* old, const Json& object, Problems* problems) {
  ParseExperiment(object, problems);
  if (old != nullptr && old->Find("spec") != nullptr && object.Find("spec") != nullptr)
    CheckChange(*old, object, problems);
}

}  // namespace

KindSpec Spec() {
  return KindSpec("kubeflow.org", "v1beta1", "experiments", "Experiment")
      .Served({"v1beta1", "v1alpha3"})
      .Categories({"all", "kubeflow", "katib"})
      .HasStatus()
      .Custom()
      .Defaults(&DefaultExperiment)
      .Check(&CheckExperiment)
      .Schema(&SchemaOf)
      .Column("Type", ".status.conditions[-1:].type", "The last condition")
      .Column("Status", ".status.conditions[-1:].status", "Whether it is true")
      .Age()
      .Wide("Trials", ".status.trials")
      .Wide("Running", ".status.trialsRunning")
      .Wide("Succeeded", ".status.trialsSucceeded")
      .Wide("Failed", ".status.trialsFailed")
      .Wide("Best", ".status.currentOptimalTrial.bestTrialName");
}

}  // namespace weft::platform::kinds::experiments
