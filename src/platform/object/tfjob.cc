// SPDX-License-Identifier: Apache-2.0
#include "platform/object/tfjob.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

#include "base/nearest_name.h"
#include "net/yaml.h"
#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/runs_weft.h"
#include "platform/object/tensorflow.h"

namespace weft::platform {
namespace {

constexpr char kV1[] = "kubeflow.org/v1";
constexpr char kV1Beta1[] = "kubeflow.org/v1beta1";
constexpr int64_t kMostReplicas = 10000;
constexpr int64_t kMostServers = 256;  // what `weft exec` runs at most
constexpr int64_t kMostSettleSeconds = 86400;
// Of an elasticPolicy.
constexpr char kGainMetric[] = "examples-per-cost";
constexpr size_t kLongestName = 63;  // of a service

const std::vector<std::string>& TypeSpellings() {
  static const auto* const names =
      new std::vector<std::string>{"Chief", "Master", "Worker", "PS", "Evaluator"};
  return *names;
}

// The fields that v1 has under runPolicy and earlier files right under spec.
void ReadRunFields(FieldReader* reader, RunPolicy* policy) {
  int clean = static_cast<int>(policy->clean_pod_policy);
  reader->ReadChoice("cleanPodPolicy", {"All", "Running", "None"}, &clean);
  policy->clean_pod_policy = static_cast<CleanPodPolicy>(clean);
  ReadOptionalInt(reader, "ttlSecondsAfterFinished", &policy->ttl_seconds_after_finished);
  ReadOptionalInt(reader, "activeDeadlineSeconds", &policy->active_deadline_seconds);
  ReadOptionalInt(reader, "backoffLimit", &policy->backoff_limit);
}

void ReadScheduling(const Json& value, const std::string& path, Problems* problems,
                    SchedulingPolicy* policy) {
  FieldReader reader(value, path, problems);
  ReadOptionalInt(&reader, "minAvailable", &policy->min_available);
  reader.ReadString("queue", &policy->queue);
  reader.ReadString("priorityClass", &policy->priority_class);
  ReadOptionalInt(&reader, "scheduleTimeoutSeconds", &policy->schedule_timeout_seconds);
  if (const Json* const resources = reader.Find("minResources")) {
    CheckResources(*resources, reader.PathOf("minResources"), problems);
    policy->min_resources = *resources;
  }
  reader.Finish();
}

void ReadRunPolicy(const Json& value, const std::string& path, Problems* problems,
                   RunPolicy* policy) {
  FieldReader reader(value, path, problems);
  ReadRunFields(&reader, policy);
  reader.ReadBool("suspend", &policy->suspend);
  int manager = 0;
  reader.ReadChoice("managedBy", {"kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"},
                    &manager);
  if (const Json* const scheduling = reader.Find("schedulingPolicy")) {
    ReadScheduling(*scheduling, reader.PathOf("schedulingPolicy"), problems, &policy->scheduling);
  }
  reader.Finish();
}

void CheckContainers(const ReplicaSpec& replica, const Json& value, Problems* problems) {
  const std::string path = absl::StrCat(replica.path, ".template.spec.containers");
  if (replica.pod.containers.empty() || replica.TensorFlowContainer() != nullptr) return;
  std::vector<std::string> names;
  for (const Container& container : replica.pod.containers) names.push_back(container.name);
  problems->Add(
      value, path,
      absl::StrCat("no container is named 'tensorflow', only '", absl::StrJoin(names, "', '"),
                   "'; the one that trains must have that name"));
}

// A list of metrics in the form of HorizontalPodAutoscalers, of which there is one, and how seldom
// the count changes by it.
void ReadGain(const std::string& path, FieldReader* reader, Problems* problems,
              std::optional<ChosenByGain>* chosen) {
  ChosenByGain by;
  reader->ReadInt("stabilizationWindowSeconds", 10, kMostSettleSeconds, &by.settle_seconds);
  const Json* const metrics = reader->Find("metrics");
  if (metrics == nullptr) return;
  const Json* const metric =
      metrics->is_array() && metrics->size() == 1 ? &metrics->items()[0] : nullptr;
  const std::string value =
      metric == nullptr ? "" : StringField(*metric, {"external", "target", "value"});
  if (metric == nullptr || StringField(*metric, {"type"}) != "External" ||
      StringField(*metric, {"external", "metric", "name"}) != kGainMetric ||
      StringField(*metric, {"external", "target", "type"}) != "Value" ||
      !absl::SimpleAtod(value, &by.least_gain) || !(by.least_gain > 0 && by.least_gain <= 1)) {
    problems->Add(*metrics, path + ".metrics",
                  absl::StrCat("expected one metric of type External, named ", kGainMetric,
                               ", with a target of type Value above 0 and up to 1, as \"0.5\""));
    return;
  }
  *chosen = by;
}

// The written number is that of pods; the tasks are as many as there may be pods.
void ReadServerPods(const Json& value, const std::string& path, Problems* problems,
                    ReplicaSpec* replica) {
  if (replica->type != ReplicaType::kPs) {
    problems->Add(value, path,
                  "is for PS here; how many workers there may be stands in spec.elasticPolicy");
    return;
  }
  FieldReader reader(value, path, problems);
  ServerPods pods{.count = replica->replicas};
  int64_t tasks = pods.count;
  reader.ReadInt("minReplicas", 1, kMostServers, &pods.least);
  if (reader.Require("maxReplicas", "how many parameter servers programs know"))
    reader.ReadInt("maxReplicas", 1, kMostServers, &tasks);
  ReadGain(path, &reader, problems, &pods.chosen);
  reader.Finish();
  if (pods.least > tasks) {
    problems->Add(value, path,
                  absl::StrCat("minReplicas is ", pods.least, " and maxReplicas only ", tasks));
  } else if (pods.count < pods.least || pods.count > tasks) {
    problems->Add(
        value, absl::StrCat(replica->path, ".replicas"),
        absl::StrCat("holds ", pods.count, ", its elasticPolicy allows ", pods.least, " to ", tasks,
                     ": ", tasks,
                     " parameter servers are what programs know, and each is in one pod"));
  }
  replica->replicas = tasks;
  replica->server_pods = pods;
}

ReplicaSpec ParseReplica(ReplicaType type, const Json& value, const std::string& path,
                         Problems* problems) {
  ReplicaSpec replica;
  replica.type = type;
  replica.path = path;
  FieldReader reader(value, path, problems);
  reader.ReadInt("replicas", 0, kMostReplicas, &replica.replicas);
  int policy = static_cast<int>(replica.restart_policy);
  reader.ReadChoice("restartPolicy", {"Always", "OnFailure", "Never", "ExitCode"}, &policy);
  replica.restart_policy = static_cast<RestartPolicy>(policy);
  if (reader.Require("template", "the pod of this replica, with spec.containers")) {
    replica.pod = ParsePodTemplate(*reader.Find("template"), reader.PathOf("template"), problems);
    CheckContainers(replica, value, problems);
  }
  if (const Json* const elastic = reader.Find("elasticPolicy"))
    ReadServerPods(*elastic, reader.PathOf("elasticPolicy"), problems, &replica);
  reader.Finish();
  return replica;
}

void ParseReplicas(const Json& value, const std::string& path, Problems* problems, TfJob* job) {
  FieldReader reader(value, path, problems);
  const std::vector<std::string>& spellings = TypeSpellings();
  for (const JsonMember& member : value.members()) {
    const auto spelling =
        std::find_if(spellings.begin(), spellings.end(), [&](const std::string& candidate) {
          return absl::EqualsIgnoreCase(candidate, member.name);
        });
    const std::string member_path = reader.PathOf(member.name);
    if (spelling == spellings.end()) {
      const std::string nearest = NearestName(member.name, spellings);
      problems->Add(
          member.value, member_path,
          absl::StrCat("there is no such replica type. Allowed are ",
                       absl::StrJoin(spellings, ", "),
                       nearest.empty() ? "" : absl::StrCat(". Did you mean '", nearest, "'?")));
      continue;
    }
    const auto type = static_cast<ReplicaType>(spelling - spellings.begin());
    if (job->Find(type) != nullptr) {
      problems->Add(member.value, member_path,
                    absl::StrCat(*spelling, " stands twice, as '", member.name, "' and as '",
                                 job->Find(type)->path.substr(path.size() + 1), "'"));
      continue;
    }
    job->replicas.push_back(ParseReplica(type, member.value, member_path, problems));
  }
  if (value.is_object() && value.size() == 0) {
    problems->Add(value, path,
                  absl::StrCat("is empty. Allowed are ", absl::StrJoin(spellings, ", ")));
  }
  if (job->Find(ReplicaType::kChief) != nullptr && job->Find(ReplicaType::kMaster) != nullptr) {
    problems->Add(value, path, "has Chief and Master, which mean the same: keep one");
  }
  std::stable_sort(job->replicas.begin(), job->replicas.end(),
                   [](const ReplicaSpec& a, const ReplicaSpec& b) { return a.type < b.type; });
}

void ReadElasticPolicy(const Json& value, const std::string& path, Problems* problems, TfJob* job) {
  FieldReader reader(value, path, problems);
  ElasticPolicy policy;
  reader.ReadInt("minReplicas", 1, kMostReplicas, &policy.min_replicas);
  if (reader.Require("maxReplicas", "the most workers that the job may have"))
    reader.ReadInt("maxReplicas", 1, kMostReplicas, &policy.max_replicas);
  ReadGain(path, &reader, problems, &policy.chosen);
  reader.Finish();
  if (policy.min_replicas > policy.max_replicas) {
    problems->Add(value, path,
                  absl::StrCat("minReplicas is ", policy.min_replicas, " and maxReplicas only ",
                               policy.max_replicas));
    return;
  }
  job->elastic = policy;
}

// What is to be trained until when for how much.
void ReadTrainingGoal(const Json& policy, FieldReader* reader, Problems* problems,
                      DistributionPolicy* distribution) {
  constexpr int64_t kMost = int64_t{1} << 53;
  const std::string path = "spec.distributionPolicy";
  reader->ReadInt("examples", 1, kMost, &distribution->examples);
  reader->ReadInt("deadlineSeconds", 1, kMost, &distribution->deadline_seconds);
  std::string budget;
  reader->ReadString("budget", &budget);
  if (!budget.empty() && (!absl::SimpleAtod(budget, &distribution->budget) ||
                          !std::isfinite(distribution->budget) || distribution->budget <= 0)) {
    problems->Add(policy, path + ".budget",
                  absl::StrCat("expected dollars above 0, as \"12.50\", found \"", budget, "\""));
  }
  if (distribution->examples == 0 && (distribution->deadline_seconds > 0 || !budget.empty())) {
    problems->Add(policy, path,
                  "has a deadline or a budget and not the examples that are to be trained on");
  }
}

void ReadAlternatives(FieldReader* policy, Problems* problems,
                      std::vector<WorkerAlternative>* alternatives) {
  int index = 0;
  for (const Json& item : policy->ReadList("alternatives")) {
    const std::string path = absl::StrCat("spec.distributionPolicy.alternatives[", index++, "]");
    FieldReader reader(item, path, problems);
    WorkerAlternative alternative;
    if (reader.Require("name", "what status.distribution calls it"))
      reader.ReadString("name", &alternative.name);
    if (reader.Require("resources", "what a worker asks for, as a container does"))
      alternative.resources = *reader.Find("resources");
    std::vector<std::pair<std::string, std::string>> labels;
    reader.ReadStringMap("nodeSelector", &labels);
    if (!labels.empty()) alternative.node_selector = *item.Find("nodeSelector");
    reader.Finish();
    const bool is_twice =
        std::any_of(alternatives->begin(), alternatives->end(),
                    [&](const auto& other) { return other.name == alternative.name; });
    if (is_twice || alternative.name == kWrittenAlternative) {
      problems->Add(item, path + ".name",
                    absl::StrCat("\"", alternative.name, "\" is another alternative's name"));
    }
    alternatives->push_back(std::move(alternative));
  }
}

void ReadDistribution(FieldReader* spec, Problems* problems, TfJob* job) {
  int who = 0;
  spec->ReadChoice("distribution", {"written", "auto", "required"}, &who);
  job->distribution.is_automatic = who > 0;
  job->distribution.is_required = who == 2;
  const Json* const policy = spec->Find("distributionPolicy");
  if (policy == nullptr) return;
  FieldReader reader(*policy, "spec.distributionPolicy", problems);
  reader.ReadString("costs", &job->distribution.costs);
  reader.ReadInt("maxWorkers", 1, 1024, &job->distribution.most_workers);
  reader.ReadInt("maxServers", 0, 1024, &job->distribution.most_servers);
  int objective = 0;
  reader.ReadChoice("objective", {"time", "cost"}, &objective);
  job->distribution.wants_least_cost = objective == 1;
  ReadTrainingGoal(*policy, &reader, problems, &job->distribution);
  ReadAlternatives(&reader, problems, &job->distribution.alternatives);
  reader.Finish();
}

// Who chooses no counts has no use for a goal.
void CheckDistributionPolicy(const TfJob& job, const Json& spec, Problems* problems) {
  const Json* const policy = spec.Find("distributionPolicy");
  const ReplicaSpec* const servers = job.ElasticServers();
  const bool is_scaled = (job.elastic.has_value() && job.elastic->chosen.has_value()) ||
                         (servers != nullptr && servers->server_pods->chosen.has_value());
  if (policy == nullptr || job.distribution.is_automatic ||
      (is_scaled && job.distribution.costs.empty()))
    return;
  problems->Add(*policy, "spec.distributionPolicy",
                "is for jobs whose distribution is auto or required, or whose counts an "
                "elasticPolicy leaves to metrics");
}

void CheckElasticWorkers(const TfJob& job, const Json& value, Problems* problems) {
  if (!job.elastic.has_value()) return;
  const ReplicaSpec* const workers = job.Find(ReplicaType::kWorker);
  if (workers == nullptr) {
    problems->Add(value, "spec.elasticPolicy", "is for workers, and the job has none");
    return;
  }
  const ElasticPolicy& policy = *job.elastic;
  if (workers->replicas < policy.min_replicas || workers->replicas > policy.max_replicas) {
    problems->Add(value, absl::StrCat(workers->path, ".replicas"),
                  absl::StrCat("holds ", workers->replicas, ", the elasticPolicy allows ",
                               policy.min_replicas, " to ", policy.max_replicas));
  }
}

// What else the job says must leave tasks the possibility to go from pod to pod.
void CheckElasticServers(const TfJob& job, const Json& value, Problems* problems) {
  const ReplicaSpec* const servers = job.ElasticServers();
  if (servers == nullptr) return;
  const std::string path = absl::StrCat(servers->path, ".elasticPolicy");
  const auto refuse = [&](absl::string_view why) { problems->Add(value, path, std::string(why)); };
  const Container* const container = servers->TensorFlowContainer();
  if (container != nullptr && container->command.empty()) {
    refuse(
        "needs a command in the container 'tensorflow': a pod of several servers runs it once for "
        "each, and what an image would run is not known");
  } else if (container != nullptr && !RunsWeft(*container) &&
             job.extras.security == TaskSecurity::kNone) {
    refuse(
        "is for weft's servers, which hand over what they hold: run 'weft server' or 'python -m "
        "weft', or say weft.dev/task-security for a program that starts one itself");
  }
  if (job.version != TfJobVersion::kV1) refuse("is for kubeflow.org/v1");
  if (job.enable_dynamic_worker) refuse("does not go together with enableDynamicWorker");
  if (job.extras.restarts_whole) refuse("does not go together with weft.dev/restart: job");
  if (job.extras.packing != Packing::kNever) refuse("does not go together with weft.dev/packing");
  if (!job.distribution.costs.empty())
    refuse("does not go together with a distributionPolicy that chooses counts");
  const auto& chosen = servers->server_pods->chosen;
  if (chosen && job.elastic.has_value() && job.elastic->chosen &&
      chosen->least_gain != job.elastic->chosen->least_gain)
    refuse("has another examples-per-cost than spec.elasticPolicy, and both are decided together");
}

void ParseSpec(const Json& value, Problems* problems, TfJob* job) {
  FieldReader spec(value, "spec", problems);
  const bool is_v1 = job->version == TfJobVersion::kV1;
  job->run_policy.clean_pod_policy = is_v1 ? CleanPodPolicy::kNone : CleanPodPolicy::kRunning;
  ReadRunFields(&spec, &job->run_policy);
  if (is_v1) {
    if (const Json* const policy = spec.Find("runPolicy")) {
      ReadRunPolicy(*policy, "spec.runPolicy", problems, &job->run_policy);
    }
    int success = 0;
    spec.ReadChoice("successPolicy", {"", "AllWorkers"}, &success);
    job->success_policy = static_cast<SuccessPolicy>(success);
    spec.ReadBool("enableDynamicWorker", &job->enable_dynamic_worker);
    if (const Json* const elastic = spec.Find("elasticPolicy"))
      ReadElasticPolicy(*elastic, "spec.elasticPolicy", problems, job);
    ReadDistribution(&spec, problems, job);
  }
  if (spec.Require("tfReplicaSpecs", "the tasks of the job, by type: PS, Worker, Chief, ...")) {
    ParseReplicas(*spec.Find("tfReplicaSpecs"), "spec.tfReplicaSpecs", problems, job);
    CheckElasticWorkers(*job, value, problems);
    CheckElasticServers(*job, value, problems);
    if (is_v1) CheckDistributionPolicy(*job, value, problems);
  }
  spec.Finish();
}

}  // namespace

absl::string_view ReplicaTypeName(ReplicaType type) {
  switch (type) {
    case ReplicaType::kChief:
      return "chief";
    case ReplicaType::kMaster:
      return "master";
    case ReplicaType::kWorker:
      return "worker";
    case ReplicaType::kPs:
      return "ps";
    case ReplicaType::kEvaluator:
      return "evaluator";
  }
  return "";
}

const Container* ReplicaSpec::TensorFlowContainer() const {
  for (const Container& container : pod.containers) {
    if (container.name == "tensorflow") return &container;
  }
  return nullptr;
}

const ReplicaSpec* TfJob::Find(ReplicaType type) const {
  for (const ReplicaSpec& replica : replicas) {
    if (replica.type == type) return &replica;
  }
  return nullptr;
}

void ReadOptionalInt(FieldReader* reader, absl::string_view name, std::optional<int64_t>* out) {
  int64_t value = -1;
  reader->ReadInt(name, 0, INT32_MAX, &value);
  if (value >= 0) *out = value;
}

ObjectMeta ParseJobMeta(const Json& meta, Problems* problems) {
  ObjectMeta parsed = ParseObjectMeta(meta, "metadata", problems);
  if (!IsDnsLabel(parsed.name)) {
    problems->Add(meta, "metadata.name",
                  HoldsButAllowed(Json(parsed.name),
                                  "allowed are 1 to 63 of a-z, 0-9 and '-', a letter first"));
  }
  return parsed;
}

void CheckTaskNames(const TfJob& job, const Json& document, Problems* problems) {
  const std::string& name = job.metadata.name;
  if (!IsDnsLabel(name)) return;
  std::string longest = job.extras.tensorboard.has_value() ? "-tensorboard" : "";
  for (const ReplicaSpec& replica : job.replicas) {
    const std::string rest = absl::StrCat("-", ReplicaTypeName(replica.type), "-",
                                          std::max<int64_t>(replica.replicas, 1) - 1);
    if (rest.size() > longest.size()) longest = rest;
  }
  const size_t size = name.size() + longest.size();
  if (size <= kLongestName) return;
  const Json* const at = FindField(document, {"metadata", "name"});
  problems->Add(
      at == nullptr ? document : *at, "metadata.name",
      HoldsButAllowed(Json(name),
                      absl::StrCat("with '", longest, "' the name of a pod and service ", "has ",
                                   size, " characters, ", kLongestName, " are allowed: make it ",
                                   size - kLongestName, " shorter")));
}

const ReplicaSpec* TfJob::ElasticServers() const {
  const ReplicaSpec* const servers = Find(ReplicaType::kPs);
  return servers != nullptr && servers->server_pods.has_value() ? servers : nullptr;
}

StatusOr<TfJob> ParseTfJob(const Json& document, const std::string& file) {
  Problems problems(file);
  TfJob job = ParseTfJob(document, &problems);
  WEFT_RETURN_IF_ERROR(problems.ToStatus());
  return job;
}

TfJob ParseTfJob(const Json& document, Problems* problems) {
  if (StringField(document, {"kind"}) == kTensorflowKind)
    return ParseTensorflow(document, problems);
  TfJob job;
  FieldReader reader(document, "", problems);
  std::string kind;
  reader.ReadString("kind", &kind);
  int version = 0;
  if (reader.Require("apiVersion", absl::StrCat("allowed are ", kV1, " and ", kV1Beta1))) {
    reader.ReadChoice("apiVersion", {kV1, kV1Beta1}, &version);
  }
  job.version = static_cast<TfJobVersion>(version);
  if (document.is_object() && kind != "TFJob") {
    const std::string nearest = NearestName(kind, {kTfJobKind, kTensorflowKind});
    problems->Add(
        document, "kind",
        HoldsButAllowed(Json(kind),
                        absl::StrCat("TFJob is allowed", nearest.empty() ? "" : ". Did you mean '",
                                     nearest, nearest.empty() ? "" : "'?")));
  }
  if (reader.Require("metadata", "with the name of the job")) {
    const Json& meta = *reader.Find("metadata");
    job.metadata = ParseJobMeta(meta, problems);
    ReadJobAnnotations(meta, problems, &job.extras);
  }
  if (reader.Require("spec", "with tfReplicaSpecs"))
    ParseSpec(*reader.Find("spec"), problems, &job);
  reader.Accept({"status"});
  reader.Finish();
  CheckTaskNames(job, document, problems);
  return job;
}

void CheckImages(const TfJob& job, const Json& document, Problems* problems) {
  for (const ReplicaSpec& replica : job.replicas) {
    // The compact kind has one image, which it requires.
    if (job.kind != kTfJobKind) continue;
    for (size_t i = 0; i < replica.pod.containers.size(); ++i) {
      if (!replica.pod.containers[i].image.empty()) continue;
      problems->Required(document,
                         absl::StrCat(replica.path, ".template.spec.containers[", i, "].image"));
    }
  }
}

void CheckJobUpdate(const Json& old, const Json& document, Problems* problems) {
  const auto check = [&](FieldPath path, const char* name) {
    const std::string before = StringField(old, path);
    const Json* const held = FindField(document, path);
    const std::string after = StringField(document, path);
    if (before.empty() || before == after) return;
    problems->Add(held == nullptr ? document : *held, name,
                  HoldsButAllowed(held == nullptr ? Json() : *held,
                                  absl::StrCat("\"", before, "\" is allowed: it does not change")));
  };
  check({"spec", "runPolicy", "managedBy"}, "spec.runPolicy.managedBy");
  check({"spec", "runPolicy", "schedulingPolicy", "queue"},
        "spec.runPolicy.schedulingPolicy.queue");
  Problems known("");
  const auto tasks_of = [&known](const Json& job) {
    const TfJob parsed = ParseTfJob(job, &known);
    const ReplicaSpec* const servers = parsed.ElasticServers();
    return servers == nullptr ? 0 : servers->replicas;
  };
  const int64_t before = tasks_of(old);
  const int64_t after = tasks_of(document);
  if (before == after || !known.empty()) return;
  problems->Add(
      document, "spec.tfReplicaSpecs.PS.elasticPolicy.maxReplicas",
      absl::StrCat("does not change, as programs know that many parameter servers: there ", "was ",
                   before == 0 ? "none" : absl::StrCat(before), ", now it is ",
                   after == 0 ? "none" : absl::StrCat(after)));
}

std::vector<Json> UnrollLists(const std::vector<Json>& documents) {
  std::vector<Json> objects;
  for (const Json& document : documents) {
    const Json* const items = document.Find("items");
    if (StringField(document, {"kind"}) == "List" && items != nullptr && items->is_array()) {
      objects.insert(objects.end(), items->items().begin(), items->items().end());
    } else {
      objects.push_back(document);
    }
  }
  return objects;
}

Json NamedByPrefix(const Json& document) {
  Json named = document;
  std::string prefix = StringField(document, {"metadata", "generateName"});
  while (absl::EndsWith(prefix, "-")) prefix.pop_back();
  if (NameOf(document).empty() && !prefix.empty())
    SetField(&named, {"metadata", "name"}, std::move(prefix));
  return named;
}

bool IsJobKind(const Json& kind) {
  return kind == Json(kTfJobKind) || kind == Json(kTensorflowKind);
}

StatusOr<TfJob> ParseTfJobText(absl::string_view text, const std::string& file,
                               const std::string& name) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Json> written, ParseYamlOrJson(text, file));
  const std::vector<Json> documents = UnrollLists(written);
  std::vector<const Json*> jobs;
  std::vector<std::string> names;
  for (const Json& document : documents) {
    const Json* const kind = document.Find("kind");
    // A file with one document is meant as a job, whatever it says: its own error is the clearest.
    if (documents.size() > 1 && (kind == nullptr || !IsJobKind(*kind))) continue;
    const Json* const meta = document.Find("metadata");
    const Json* const job_name = meta == nullptr ? nullptr : meta->Find("name");
    names.push_back(job_name == nullptr ? "" : job_name->AsString().value_or(""));
    if (name.empty() || name == names.back()) jobs.push_back(&document);
  }
  if (jobs.empty()) {
    if (names.empty()) return InvalidArgument(file, ": there is no TFJob in this file");
    return NotFound(file, ": there is no TFJob named '", name, "', only '",
                    absl::StrJoin(names, "', '"), "'");
  }
  if (jobs.size() > 1) {
    return InvalidArgument(file, ": there are several TFJobs, say which one with --job: '",
                           absl::StrJoin(names, "', '"), "'");
  }
  return ParseTfJob(NamedByPrefix(*jobs[0]), file);
}

}  // namespace weft::platform
