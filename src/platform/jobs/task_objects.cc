// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/task_objects.h"

#include <algorithm>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "net/socket_address.h"
#include "platform/jobs/packed_pod.h"
#include "platform/jobs/task_security.h"
#include "platform/jobs/tensorboard_objects.h"
#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/pod_view.h"
#include "platform/object/task_config.h"

namespace weft::platform {
namespace {

constexpr char kPortName[] = "tfjob-port";
constexpr int64_t kDefaultPort = 2222;
// Seconds that a pod with a task that can move has to end where its template does not say: the copy
// of all that the task holds is to end within it. Autoscalers of nodes wait as long for a pod.
constexpr int64_t kGraceForMove = 600;
// Of a pod's grace, what a server needs for its end itself; and for how long at most it waits for a
// process that begins to take its task over.
constexpr int64_t kGraceForEnd = 3;
constexpr int64_t kUsualWait = 30 - kGraceForEnd;
constexpr char kNextSuffix[] = "-next";
constexpr char kPodAddress[] = "WEFT_POD_IP";

using LabelPairs = std::vector<std::pair<std::string, std::string>>;

// Those of the first API version too, for selectors that people have kept.
LabelPairs OldLabels(const JobView& view, ReplicaType type, int64_t index) {
  return {{"group-name", "kubeflow.org"},
          {"tf-job-name", view.job.metadata.name},
          {"tf-replica-type", std::string(ReplicaTypeName(type))},
          {"tf-replica-index", absl::StrCat(index)}};
}

LabelPairs TaskLabels(const JobView& view, ReplicaType type, int64_t index) {
  LabelPairs labels = JobLabels(view);
  labels.emplace_back(kTypeLabel, ReplicaTypeName(type));
  labels.emplace_back(kIndexLabel, absl::StrCat(index));
  return labels;
}

// Of the pod that has the parameter server, whichever tasks are there too.
std::pair<std::string, std::string> ServerLabel(const TaskId& task) {
  return {absl::StrCat("weft.dev/", NameOfTask(task)), "true"};
}

int64_t PortOf(const ReplicaSpec& replica) {
  const Container* const container = replica.TensorFlowContainer();
  if (container == nullptr) return kDefaultPort;
  for (const ContainerPort& port : container->ports) {
    if (port.name == kPortName) return port.port;
  }
  return kDefaultPort;
}

void AddLabels(Json* object, const LabelPairs& labels) {
  for (const auto& [name, value] : labels) SetField(object, {"metadata", "labels", name}, value);
}

TaskCluster ClusterOf(const JobView& view) {
  TaskCluster cluster;
  cluster.job = &view.job;
  cluster.has_evaluators = view.lists_evaluators && !view.is_v1beta1;
  cluster.host_of = [&view](ReplicaType type, int64_t index) {
    const int64_t port = TaskPort(view, type, index);
    const std::string name = TaskObjectName(view, type, index);
    if (view.has_short_names) return absl::StrCat(name, ":", port);
    const std::string domain =
        view.cluster_domain.empty() ? "" : absl::StrCat(".", view.cluster_domain);
    return absl::StrCat(name, ".", NamespaceOf(*view.object), ".svc", domain, ":", port);
  };
  return cluster;
}

// The list of that name, made when it is not there.
Json* ListOf(Json* container, const char* name) {
  if (container->Find(name) == nullptr || !container->Find(name)->is_array()) {
    container->Set(name, Json::MakeArray());
  }
  return container->FindMutable(name);
}

void AddVariable(Json* container, const char* name, const std::string& value) {
  Json variable;
  variable.Set("name", name);
  variable.Set("value", value);
  ListOf(container, "env")->Append(std::move(variable));
}

// Whether tasks find this one at the default port, whatever the port is called.
bool HasTaskPort(const std::vector<ContainerPort>& ports) {
  return std::any_of(ports.begin(), ports.end(), [](const ContainerPort& port) {
    return port.name == kPortName || (port.port == kDefaultPort && port.protocol == "TCP");
  });
}

// What the container that trains is told, and its port.
void DressContainer(const JobView& view, const ReplicaSpec& replica, int64_t index,
                    Json* container) {
  TaskWords words = WordsOf(view, replica.type, index);
  for (const auto& [name, value] : words.variables) AddVariable(container, name.c_str(), value);
  for (std::string& word : words.flags) ListOf(container, "args")->Append(std::move(word));
  Json* const ports = ListOf(container, "ports");
  if (HasTaskPort(replica.TensorFlowContainer()->ports)) return;
  Json port;
  port.Set("name", kPortName);
  port.Set("containerPort", kDefaultPort);
  port.Set("protocol", "TCP");
  ports->Append(std::move(port));
}

// Before the variables that name it: of a pod that takes tasks over on a network.
void TellPodAddress(const JobView& view, const TaskPack& tasks, Json* container) {
  const bool takes = std::any_of(tasks.begin(), tasks.end(), [&](const TaskId& task) {
    return view.taken_from.count(task) != 0;
  });
  if (!takes || !view.has_network) return;
  Json own;
  own.Set("name", kPodAddress);
  SetField(&own, {"valueFrom", "fieldRef", "fieldPath"}, "status.podIP");
  Json variables = Json(Json::Array{std::move(own)});
  for (Json& each : *ListOf(container, "env")->mutable_items()) variables.Append(std::move(each));
  container->Set("env", std::move(variables));
}

std::string PodRestartPolicy(RestartPolicy policy) {
  switch (policy) {
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    case RestartPolicy::kNever:
    case RestartPolicy::kExitCode:  // the controller decides by the code
      return "Never";
  }
  return "Never";
}

// Where another container comes first, `kubectl logs` would show that one.
void ShowTrainer(Json* pod) {
  static constexpr char kAnnotation[] = "kubectl.kubernetes.io/default-container";
  const Json::Array& containers = PodView(*pod).containers();
  const bool is_first =
      containers.empty() || ContainerView(containers.front()).name() == kTrainingContainer;
  if (is_first || !PodView(*pod).annotation(kAnnotation).empty()) return;
  SetField(pod, {"metadata", "annotations", kAnnotation}, kTrainingContainer);
}

// A service wants names, all different, and each port of a protocol once.
Json ServicePorts(const ReplicaSpec& replica) {
  const Container* const container = replica.TensorFlowContainer();
  std::vector<ContainerPort> wanted;
  if (container != nullptr) wanted = container->ports;
  if (!HasTaskPort(wanted)) wanted.push_back({kPortName, kDefaultPort});
  std::set<std::pair<int64_t, std::string>> there;
  Json ports = Json::MakeArray();
  for (const ContainerPort& each : wanted) {
    if (!there.emplace(each.port, each.protocol).second) continue;
    const bool is_tcp = each.protocol == "TCP";
    const std::string rest = is_tcp ? "" : absl::StrCat("-", absl::AsciiStrToLower(each.protocol));
    Json port;
    port.Set("name", each.name.empty() ? absl::StrCat("port-", each.port, rest) : each.name);
    port.Set("port", each.port);
    if (!is_tcp) port.Set("protocol", each.protocol);
    ports.Append(std::move(port));
  }
  return ports;
}

}  // namespace

LabelPairs JobLabels(const JobView& view) {
  return {{kJobLabel, view.job.metadata.name}, {kOperatorLabel, OperatorName(view.job.kind)}};
}

Json OwnerReference(const JobView& view) {
  Json reference;
  reference.Set("apiVersion", StringField(*view.object, {"apiVersion"}));
  reference.Set("kind", StringField(*view.object, {"kind"}));
  reference.Set("name", NameOf(*view.object));
  reference.Set("uid", UidOf(*view.object));
  reference.Set("controller", true);
  reference.Set("blockOwnerDeletion", true);
  return reference;
}

std::string TypeSpelling(ReplicaType type) {
  switch (type) {
    case ReplicaType::kChief:
      return "Chief";
    case ReplicaType::kMaster:
      return "Master";
    case ReplicaType::kWorker:
      return "Worker";
    case ReplicaType::kPs:
      return "PS";
    case ReplicaType::kEvaluator:
      return "Evaluator";
  }
  return "";
}

std::string OperatorName(absl::string_view kind) {
  return absl::StrCat(absl::AsciiStrToLower(kind), "-controller");
}

std::string TaskName(ReplicaType type, int64_t index) {
  return absl::StrCat(ReplicaTypeName(type), "-", index);
}

std::string TaskObjectName(const JobView& view, ReplicaType type, int64_t index) {
  return absl::StrCat(view.job.metadata.name, "-", TaskName(type, index));
}

bool IsMasterRole(const TfJob& job, ReplicaType type, int64_t index) {
  const bool is_chief = type == ReplicaType::kChief || type == ReplicaType::kMaster;
  if (is_chief) return true;
  const bool has_chief =
      job.Find(ReplicaType::kChief) != nullptr || job.Find(ReplicaType::kMaster) != nullptr;
  return !has_chief && type == ReplicaType::kWorker && index == 0;
}

int64_t GraceOfMoving(const Json& written) {
  return IntField(written, {"spec", "terminationGracePeriodSeconds"}, kGraceForMove);
}

std::string TypeSelector(const JobView& view, ReplicaType type) {
  return absl::StrCat(kJobLabel, "=", view.job.metadata.name, ",", kOperatorLabel, "=",
                      OperatorName(view.job.kind), ",", kTypeLabel, "=", ReplicaTypeName(type));
}

TaskWords WordsOf(const JobView& view, ReplicaType type, int64_t index) {
  const TaskCluster cluster = ClusterOf(view);
  TaskWords words;
  std::string tf_config = MakeTfConfig(cluster, type, index);
  if (!tf_config.empty()) words.variables.emplace_back("TF_CONFIG", std::move(tf_config));
  if (view.job.distribution.is_automatic) {
    words.variables.emplace_back("WEFT_DISTRIBUTION",
                                 view.job.distribution.is_required ? "required" : "auto");
  }
  if (view.job.HasMovingTasks()) words.variables.emplace_back("WEFT_MEMBERSHIP", "1");
  if (view.job.CanMove(type)) {
    const ReplicaSpec* const replica = view.job.Find(type);
    const Json* const grace =
        FindField(replica->pod.written, {"spec", "terminationGracePeriodSeconds"});
    const int64_t wait =
        grace == nullptr ? kUsualWait : GraceOfMoving(replica->pod.written) - kGraceForEnd;
    if (wait > 0) words.variables.emplace_back("WEFT_HAND_OVER", absl::StrCat(wait));
  }
  if (const auto from = view.taken_from.find({type, index}); from != view.taken_from.end()) {
    // The name of the service leads to pods that are not ended; others hear of this one's address
    // from the process before.
    words.variables.emplace_back(
        "WEFT_TAKE_OVER", view.has_network
                              ? absl::StrCat("$(", kPodAddress, "):", TaskPort(view, type, index))
                              : "127.0.0.1:0");
    words.variables.emplace_back("WEFT_TAKE_OVER_FROM", from->second);
  }
  // Ranks: how many of those in TF_CONFIG are enough, and how many the most.
  if (view.job.IsElastic(type) && view.job.Find(ReplicaType::kPs) == nullptr) {
    words.variables.emplace_back("WEFT_ELASTIC", absl::StrCat(view.job.elastic->min_replicas, ":",
                                                              view.job.elastic->max_replicas));
  }
  if (const std::optional<TensorBoardSpec>& board = view.job.extras.tensorboard) {
    words.variables.emplace_back(
        kSummaryVariable, absl::StrCat(board->folder, "/", TaskObjectName(view, type, index)));
  }
  words.flags = MakeTaskFlags(cluster, type, index);
  return words;
}

int64_t TaskPort(const JobView& view, ReplicaType type, int64_t index) {
  const auto port_of = [&](ReplicaType of) {
    const ReplicaSpec* const replica = view.job.Find(of);
    return replica == nullptr ? kDefaultPort : PortOf(*replica);
  };
  // It stays, whoever the task shares its pod with.
  if (type == ReplicaType::kPs && view.job.ElasticServers() != nullptr)
    return port_of(type) + index;
  const TaskPack* const pack = FindPack(view.packs, {type, index});
  if (pack == nullptr) return port_of(type);
  const auto at = std::find(pack->begin(), pack->end(), TaskId{type, index});
  return port_of(pack->front().type) + (at - pack->begin());
}

std::string TaskPodName(const JobView& view, const TaskPack& tasks) {
  const TaskId& first = tasks.front();
  const std::string name = TaskObjectName(view, first.type, first.index);
  const ReplicaSpec* const replica = view.job.Find(first.type);
  if (tasks.size() == 1 || replica == nullptr || !replica->server_pods.has_value()) return name;
  return absl::StrCat(name, "-to-", tasks.back().index);
}

std::string NextPodName(const std::string& first, const std::string& before) {
  return before == first ? absl::StrCat(first, kNextSuffix) : first;
}

std::string AddressIn(const JobView& view, const TaskId& task, const Json& pod) {
  if (!view.has_network) return ClusterOf(view).host_of(task.type, task.index);
  const int64_t port = TaskPort(view, task.type, task.index);
  return SocketAddress{StringField(pod, {"status", "podIP"}), static_cast<int>(port)}.ToString();
}

Json MakeTaskPod(const JobView& view, const ReplicaSpec& replica, int64_t index) {
  const TaskPack* const pack = FindPack(view.packs, {replica.type, index});
  const TaskPack tasks = pack == nullptr ? TaskPack{{replica.type, index}} : *pack;
  Json pod = replica.pod.written;
  pod.Set("apiVersion", "v1");
  pod.Set("kind", "Pod");
  SetField(&pod, {"metadata", "name"}, TaskPodName(view, tasks));
  SetField(&pod, {"metadata", "namespace"}, NamespaceOf(*view.object));
  AddLabels(&pod, TaskLabels(view, replica.type, index));
  if (replica.server_pods.has_value()) {
    for (const TaskId& task : tasks) AddLabels(&pod, {ServerLabel(task)});
  }
  if (IsMasterRole(view.job, replica.type, index)) {
    AddLabels(&pod, {{kRoleLabel, "master"}});
    if (view.is_v1beta1) AddLabels(&pod, {{"tf-job-role", "master"}});
  }
  if (view.is_v1beta1) AddLabels(&pod, OldLabels(view, replica.type, index));
  SetField(&pod, {"metadata", "ownerReferences"}, Json(Json::Array{OwnerReference(view)}));
  SetField(&pod, {"spec", "restartPolicy"},
           view.job.extras.restarts_whole ? "Never" : PodRestartPolicy(replica.restart_policy));
  if (view.job.CanMove(replica.type)) {
    SetField(&pod, {"spec", "terminationGracePeriodSeconds"}, GraceOfMoving(replica.pod.written));
  }
  Json* const spec = pod.FindMutable("spec");
  Json* const containers = spec->FindMutable("containers");
  if (containers == nullptr || !containers->is_array()) return pod;
  for (Json& container : *containers->mutable_items()) {
    if (StringField(container, {"name"}) != kTrainingContainer) continue;
    pack == nullptr ? DressContainer(view, replica, index, &container)
                    : DressSharedContainer(view, *pack, &container);
    TellPodAddress(view, tasks, &container);
  }
  if (pack != nullptr) {
    SetField(&pod, {"metadata", "annotations", kTasksAnnotation}, FormatPack(*pack));
    // Processes are started again in their container, and what that does not help by a new pod.
    SetField(&pod, {"spec", "restartPolicy"}, "Never");
  }
  SecurePod(view, &pod);
  ShowTrainer(&pod);
  return pod;
}

Json MakeNextTaskPod(const JobView& view, const ReplicaSpec& replica, int64_t index,
                     const Json& before) {
  JobView moving = view;
  const TaskId task{replica.type, index};
  moving.taken_from = {{task, AddressIn(view, task, before)}};
  Json pod = MakeTaskPod(moving, replica, index);
  SetField(&pod, {"metadata", "name"}, NextPodName(NameOf(pod), NameOf(before)));
  // One that ends has nobody to take the task over from when it is started again.
  SetField(&pod, {"spec", "restartPolicy"}, "Never");
  return pod;
}

Json MakeTaskService(const JobView& view, const ReplicaSpec& replica, int64_t index) {
  Json service;
  service.Set("apiVersion", "v1");
  service.Set("kind", "Service");
  SetField(&service, {"metadata", "name"}, TaskObjectName(view, replica.type, index));
  SetField(&service, {"metadata", "namespace"}, NamespaceOf(*view.object));
  AddLabels(&service, TaskLabels(view, replica.type, index));
  SetField(&service, {"metadata", "ownerReferences"}, Json(Json::Array{OwnerReference(view)}));
  SetField(&service, {"spec", "clusterIP"}, "None");
  const TaskPack* const pack = FindPack(view.packs, {replica.type, index});
  const TaskId task{replica.type, index};
  const TaskId pod = pack == nullptr || replica.server_pods.has_value() ? task : pack->front();
  // Which pod the parameter server is in changes.
  LabelPairs labels = JobLabels(view);
  labels.push_back(ServerLabel(pod));
  if (!replica.server_pods.has_value()) labels = TaskLabels(view, pod.type, pod.index);
  for (const auto& [name, value] : labels) SetField(&service, {"spec", "selector", name}, value);
  Json ports = ServicePorts(replica);
  if (pack != nullptr || replica.server_pods.has_value()) {
    Json port;
    port.Set("name", kPortName);
    port.Set("port", TaskPort(view, replica.type, index));
    ports = Json(Json::Array{std::move(port)});
  }
  SetField(&service, {"spec", "ports"}, std::move(ports));
  return service;
}

bool TemplateHasRestartPolicy(const ReplicaSpec& replica) {
  return !PodView(replica.pod.written).restart_policy().empty();
}

bool IsTaskBeforeAttempt(const Json& pod, int64_t attempt) {
  if (PodView(pod).label(kTypeLabel) == kTensorBoardType) return false;
  int64_t of_pod = 0;
  const std::string text = PodView(pod).label(kAttemptLabel);
  return (absl::SimpleAtoi(text, &of_pod) ? of_pod : 0) < attempt;
}

}  // namespace weft::platform
