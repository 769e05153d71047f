// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/schemas.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "platform/object/fields.h"
#include "platform/object/type_facts.h"

namespace weft::platform {
namespace {

Json Field(const char* type, const char* description) {
  Json schema;
  schema.Set("type", type);
  schema.Set("description", description);
  return schema;
}

Json Mapping(const char* description,
             std::initializer_list<std::pair<const char*, Json>> properties) {
  Json schema = Field("object", description);
  for (const auto& [name, property] : properties) SetField(&schema, {"properties", name}, property);
  return schema;
}

Json List(const char* description, Json items) {
  Json schema = Field("array", description);
  schema.Set("items", std::move(items));
  return schema;
}

Json MapOf(const char* description, Json values) {
  Json schema = Field("object", description);
  schema.Set("additionalProperties", std::move(values));
  return schema;
}

Json Choice(const char* description, std::initializer_list<const char*> values) {
  Json schema = Field("string", description);
  Json list = Json::MakeArray();
  for (const char* value : values) list.Append(value);
  schema.Set("enum", std::move(list));
  return schema;
}

Json MetaSchema() {
  return Mapping(
      "Name, labels and owners of the object.",
      {{"name", Field("string", "Unique in its namespace.")},
       {"generateName", Field("string", "A prefix; the server adds five letters.")},
       {"namespace", Field("string", "Where it lies; \"default\" when left out.")},
       {"labels", MapOf("Words to select objects by.", Field("string", "Value"))},
       {"annotations", MapOf("Words for tools and people.", Field("string", "Value"))},
       {"finalizers", List("Who must act before it is removed.", Field("string", "Name"))}});
}

Json TfJobSpec() {
  const Json clean =
      Choice("Which pods are deleted when the job has ended.", {"All", "Running", "None"});
  Json replica = Mapping(
      "Tasks of one type.",
      {{"replicas", Field("integer", "How many; 1 when left out.")},
       {"restartPolicy",
        Choice("What happens when a task ends. ExitCode: codes of 128 and more start it again, "
               "others fail the job. Never when left out.",
               {"Always", "OnFailure", "Never", "ExitCode"})},
       {"template",
        Field("object", "The pod of a task. The container named tensorflow gets TF_CONFIG.")}});
  return Mapping(
      "What shall run.",
      {{"tfReplicaSpecs",
        MapOf("The tasks by type: Chief (or Master), Worker, PS, Evaluator.", std::move(replica))},
       {"successPolicy",
        Choice("Empty: the job has succeeded with its chief, or worker 0. AllWorkers: with all "
               "workers.",
               {"", "AllWorkers"})},
       {"enableDynamicWorker",
        Field("boolean", "Workers may come and go: each is told only itself and the PS.")},
       {"runPolicy",
        Mapping(
            "How long it runs and what remains.",
            {{"cleanPodPolicy", clean},
             {"ttlSecondsAfterFinished",
              Field("integer", "The job is deleted so long after its end.")},
             {"activeDeadlineSeconds", Field("integer", "It fails when it has run for so long.")},
             {"backoffLimit", Field("integer", "It fails after so many restarts of tasks.")},
             {"suspend", Field("boolean", "No pods while this is true.")},
             {"managedBy", Field("string", "Another controller that cares for it.")},
             {"schedulingPolicy", Field("object",
                                        "For gang schedulers: minAvailable, queue, priorityClass, "
                                        "minResources, scheduleTimeoutSeconds.")}})}});
}

Json TensorflowSpec() {
  return Mapping(
      "What shall run.",
      {{"image", Field("string", "What every task runs.")},
       {"ps_count", Field("integer", "Parameter servers; none when left out.")},
       {"worker_count", Field("integer", "Workers; 1 when left out.")},
       {"gpu_worker", Field("boolean", "A GPU for each worker.")},
       {"tensorboard",
        Mapping("A TensorBoard with one run a task.",
                {{"active", Field("boolean", "Whether there is one.")},
                 {"folder",
                  Field("string", "Shared by all tasks; each writes to $WEFT_SUMMARY_FOLDER.")},
                 {"image", Field("string", "That of the tasks when left out.")},
                 {"volume", Field("object",
                                  "Where the folder lies, as in a pod's volumes; on the node "
                                  "itself when left out.")}})},
       {"command", List("The program, instead of the image's own.", Field("string", "Word"))},
       {"args",
        List("Its arguments, before --job_name, --task_index, --worker_hosts and --ps_hosts.",
             Field("string", "Word"))},
       {"env", List("Variables of the tasks.", Field("object", "Variable"))},
       {"port", Field("integer", "Where tasks listen; 2222 when left out.")},
       {"resources", Field("object", "limits and requests of a task.")},
       {"volumes", List("Volumes of the tasks.", Field("object", "Volume"))},
       {"volume_mounts", List("Where they are mounted.", Field("object", "Mount"))},
       {"task_flags", Field("boolean", "false: no flags, TF_CONFIG alone.")},
       {"trial", Field("string", "Number of the trial of a search; task.trial of TF_CONFIG.")},
       {"restart_policy", Choice("What happens when a task ends; ExitCode when left out.",
                                 {"Always", "OnFailure", "Never", "ExitCode"})},
       {"restart_whole_job", Field("boolean", "A task that starts again takes all others along.")},
       {"clean_pod_policy",
        Choice("Which pods are deleted when the job has ended; Running when left out.",
               {"All", "Running", "None"})},
       {"ttl_seconds_after_finished",
        Field("integer", "The job is deleted so long after its end.")},
       {"active_deadline_seconds", Field("integer", "It fails when it has run for so long.")},
       {"backoff_limit", Field("integer", "It fails after so many restarts of tasks.")},
       {"suspend", Field("boolean", "No pods while this is true.")}});
}

Json TfJobStatus() {
  const Json condition =
      Mapping("A state that the job is in or was in.",
              {{"type", Field("string",
                              "Created, Running, Restarting, Suspended, Succeeded or "
                              "Failed.")},
               {"status", Field("string", "True or False.")},
               {"reason", Field("string", "In one word.")},
               {"message", Field("string", "In words.")},
               {"lastUpdateTime", Field("string", "When it was written.")},
               {"lastTransitionTime", Field("string", "When the status changed.")}});
  const Json counts =
      Mapping("Tasks of one type.", {{"active", Field("integer", "Waiting or running.")},
                                     {"succeeded", Field("integer", "Ended with 0.")},
                                     {"failed", Field("integer", "Ended with another code.")},
                                     {"selector", Field("string", "Labels of their pods.")}});
  const Json progress =
      Mapping("How far its chief has come.",
              {{"task", Field("string", "Who tells.")},
               {"step", Field("integer", "Steps that are done.")},
               {"steps", Field("integer", "Of so many.")},
               {"percent", Field("string", "The same as a share.")},
               {"timeLeft", Field("string", "At the speed so far.")},
               {"metrics", MapOf("The latest, by name.", Field("number", "Value"))},
               {"time", Field("string", "When it was told.")}});
  return Mapping(
      "How it goes; written by the controller.",
      {{"conditions", List("Oldest first.", condition)},
       {"replicaStatuses", MapOf("By type.", counts)},
       {"progress", progress},
       {"packing", Mapping("Which tasks share pods.",
                           {{"pods", List("Tasks of one pod.", Field("string", "worker-0,..."))},
                            {"reason", Field("string", "Why, in words.")}})},
       {"startTime", Field("string", "When the controller took it up.")},
       {"completionTime", Field("string", "When it ended.")},
       {"lastReconcileTime", Field("string", "When the controller last looked.")}});
}

// By the facts of Kubernetes' own types. A type within itself ends as any object.
Json SchemaOfFacts(const TypeFacts& type, std::vector<const TypeFacts*> around);

Json SchemaOfField(const FieldFacts& field, const std::vector<const TypeFacts*>& around) {
  using Holds = FieldFacts::Holds;
  Json one;
  switch (field.holds) {
    case Holds::kAny:
      one.Set("type", "object");
      break;
    case Holds::kString:
    case Holds::kBytes:
    case Holds::kTime:
    case Holds::kQuantity:
    case Holds::kIntOrString:
      one.Set("type", "string");
      break;
    case Holds::kBool:
      one.Set("type", "boolean");
      break;
    case Holds::kInt32:
    case Holds::kInt64:
      one.Set("type", "integer");
      break;
    case Holds::kNumber:
      one.Set("type", "number");
      break;
    case Holds::kObject:
      one = SchemaOfFacts(*field.type, around);
      break;
  }
  if (field.shape == FieldFacts::Shape::kOne) return one;
  Json whole;
  whole.Set("type", field.shape == FieldFacts::Shape::kList ? "array" : "object");
  whole.Set(field.shape == FieldFacts::Shape::kList ? "items" : "additionalProperties",
            std::move(one));
  return whole;
}

Json SchemaOfFacts(const TypeFacts& type, std::vector<const TypeFacts*> around) {
  Json schema;
  schema.Set("type", "object");
  if (std::count(around.begin(), around.end(), &type) > 0) return schema;
  around.push_back(&type);
  Json required = Json::MakeArray();
  for (const FieldFacts& field : type.fields) {
    SetField(&schema, {"properties", field.name}, SchemaOfField(field, around));
    if (field.is_required) required.Append(field.name);
  }
  if (required.size() > 0) schema.Set("required", std::move(required));
  return schema;
}

}  // namespace

Json SchemaOf(const ResourceType& type, const std::string& version, bool is_whole) {
  if (const auto given = type.schemas.find(version); given != type.schemas.end())
    return given->second;
  Json schema = Field("object", "");
  SetField(&schema, {"properties", "apiVersion"},
           Field("string", "Group and version of the kind."));
  SetField(&schema, {"properties", "kind"}, Field("string", "What kind of object it is."));
  SetField(&schema, {"properties", "metadata"}, MetaSchema());
  if (&type == &TfJobs()) {
    schema.Set("description",
               "A distributed training job in tasks that know of each other by TF_CONFIG.");
    SetField(&schema, {"properties", "spec"}, TfJobSpec());
    SetField(&schema, {"properties", "status"}, TfJobStatus());
    return schema;
  }
  if (&type == &Tensorflows()) {
    schema.Set(
        "description",
        "A training job in short: an image, and how many parameter servers and workers of it.");
    SetField(&schema, {"properties", "spec"}, TensorflowSpec());
    SetField(&schema, {"properties", "status"}, TfJobStatus());
    return schema;
  }
  schema.Set("description", type.kind + " of Kubernetes; its own documentation says more.");
  const TypeFacts* const facts = FindTypeFacts(type.kind);
  if (facts != nullptr && !type.is_custom && is_whole) {
    const Json own = SchemaOfFacts(*facts, {});
    for (const JsonMember& member : own.Find("properties")->members()) {
      if (FindField(schema, {"properties", member.name}) == nullptr)
        SetField(&schema, {"properties", member.name}, member.value);
    }
    return schema;
  }
  schema.Set("x-kubernetes-preserve-unknown-fields", true);
  if (type.plural == "configmaps" || type.plural == "secrets") {
    SetField(&schema, {"properties", "data"}, MapOf("The contents.", Field("string", "Value")));
  } else {
    SetField(&schema, {"properties", "spec"}, Field("object", "What is wanted."));
  }
  if (type.has_status) SetField(&schema, {"properties", "status"}, Field("object", "What is."));
  return schema;
}

}  // namespace weft::platform
