// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/packed_pod.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/object/job_annotations.h"
#include "platform/object/quantity.h"
#include "platform/resources/gpu_needs.h"

namespace weft::platform {
namespace {

// Of one process in a row, before its end is the pod's.
constexpr int64_t kMostRestarts = 3;

const Json* TrainerOf(const ReplicaSpec& replica) {
  for (const Json& container : FindField(replica.pod.written, {"spec", "containers"})->items()) {
    if (StringField(container, {"name"}) == kTrainingContainer) return &container;
  }
  return nullptr;
}

bool HasVariable(const Json& container, const Json& variable) {
  const Json* const list = container.Find("env");
  return list != nullptr &&
         std::any_of(list->items().begin(), list->items().end(),
                     [&](const Json& other) { return SameJson(other, variable); });
}

// What all templates of the pack have alike; the order is the first one's, since a variable may use
// those before it.
Json CommonVariables(const JobView& view, const TaskPack& pack) {
  Json common = Json::MakeArray();
  const Json* const first = TrainerOf(*view.job.Find(pack.front().type))->Find("env");
  if (first == nullptr) return common;
  for (const Json& variable : first->items()) {
    const bool is_common = std::all_of(pack.begin(), pack.end(), [&](const TaskId& task) {
      return HasVariable(*TrainerOf(*view.job.Find(task.type)), variable);
    });
    if (is_common) common.Append(variable);
  }
  return common;
}

const char* RestartWord(const JobView& view, RestartPolicy policy) {
  if (view.job.extras.restarts_whole) return "Never";
  switch (policy) {
    case RestartPolicy::kAlways:
      return "Always";
    case RestartPolicy::kOnFailure:
      return "OnFailure";
    case RestartPolicy::kNever:
      return "Never";
    case RestartPolicy::kExitCode:
      return "ExitCode";
  }
  return "Never";
}

Json WordList(const std::vector<std::string>& words) {
  Json list = Json::MakeArray();
  for (const std::string& word : words) list.Append(word);
  return list;
}

// Whether the tasks are parameter servers that share the pod for a while: it asks for what one pod
// does, however many they are, and goes when they have gone elsewhere.
bool AreMovingServers(const JobView& view, const TaskPack& pack) {
  return view.job.Find(pack.front().type)->server_pods.has_value();
}

// As WEFT_PROCESSES lists it.
Json ProcessOf(const JobView& view, const TaskId& task, const Json& common) {
  const ReplicaSpec& replica = *view.job.Find(task.type);
  const Container& container = *replica.TensorFlowContainer();
  const Json& written = *TrainerOf(replica);
  TaskWords words = WordsOf(view, task.type, task.index);
  std::vector<std::string> args = container.args;
  args.insert(args.end(), words.flags.begin(), words.flags.end());
  Json environment = Json::MakeObject();
  if (const Json* const own = written.Find("env")) {
    Json shared = Json::MakeObject();
    shared.Set("env", common);
    for (const Json& variable : own->items()) {
      if (HasVariable(shared, variable)) continue;
      environment.Set(StringField(variable, {"name"}), StringField(variable, {"value"}));
    }
  }
  for (auto& [name, value] : words.variables) environment.Set(name, std::move(value));
  Json process;
  process.Set("name", NameOfTask(task));
  process.Set("command", WordList(container.command));
  if (!args.empty()) process.Set("args", WordList(args));
  process.Set("env", std::move(environment));
  if (!container.working_directory.empty()) process.Set("workingDir", container.working_directory);
  process.Set("restart", RestartWord(view, replica.restart_policy));
  if (replica.server_pods.has_value()) return process;
  if (task.type == ReplicaType::kPs) process.Set("serves", true);
  const int64_t gpus = GpuCountOf(written);
  if (gpus > 0) process.Set("gpus", gpus);
  return process;
}

// A sum where each task says how much; a limit that one of them does not have would be one for it,
// but devices are had by those that ask for them.
Json SumOfResources(const JobView& view, const TaskPack& pack) {
  Json resources = Json::MakeObject();
  for (const char* kind : {"limits", "requests"}) {
    std::map<std::string, std::pair<int64_t, size_t>> sums;
    for (const TaskId& task : pack) {
      const Json* const amounts =
          FindField(*TrainerOf(*view.job.Find(task.type)), {"resources", kind});
      if (amounts == nullptr) continue;
      for (const JsonMember& amount : amounts->members()) {
        auto& [sum, count] = sums[amount.name];
        sum += ParseQuantity(amount.value).value_or(0);
        ++count;
      }
    }
    for (const auto& [name, sum] : sums) {
      const bool is_bound = kind[0] == 'l' && !absl::StrContains(name, '/');
      if (is_bound && sum.second < pack.size()) continue;
      const bool is_binary =
          name == "memory" || name == "ephemeral-storage" || absl::StartsWith(name, "hugepages-");
      SetField(&resources, {kind, name}, FormatQuantity(sum.first, is_binary));
    }
  }
  return resources;
}

Json PortsOf(const JobView& view, const TaskPack& pack) {
  Json ports = Json::MakeArray();
  for (size_t i = 0; i < pack.size(); ++i) {
    Json port;
    port.Set("name", i == 0 ? "tfjob-port" : absl::StrCat("tfjob-port-", i));
    port.Set("containerPort", TaskPort(view, pack[i].type, pack[i].index));
    port.Set("protocol", "TCP");
    ports.Append(std::move(port));
  }
  return ports;
}

const Json* EndOf(const Json& pod) {
  const Json* const statuses = FindField(pod, {"status", "containerStatuses"});
  if (statuses == nullptr) return nullptr;
  for (const Json& status : statuses->items()) {
    if (StringField(status, {"name"}) == kTrainingContainer)
      return FindField(status, {"state", "terminated"});
  }
  return nullptr;
}

// What `weft exec` has left of one process; null: nothing.
const Json* ReportOf(const Json& report, const std::string& name) {
  const Json* const processes = report.Find("processes");
  if (processes == nullptr) return nullptr;
  for (const Json& process : processes->items()) {
    if (StringField(process, {"name"}) == name) return &process;
  }
  return nullptr;
}

// Whose end was the pod's: the process that `weft exec` names, or, where nobody could say, who
// leads.
TaskId CauseOf(const Json& report, const TaskPack& pack) {
  const std::string reason = StringField(report, {"reason"});
  for (const TaskId& task : pack) {
    if (absl::StartsWith(reason, NameOfTask(task) + " ")) return task;
  }
  return pack.front();
}

// The task's own end in place of the pod's.
void SetEnd(const Json& report, const TaskId& task, bool is_cause, Json* pod) {
  const bool has_failed = StringField(*pod, {"status", "phase"}) == "Failed";
  const Json* const process = ReportOf(report, NameOfTask(task));
  const bool is_done = process != nullptr && StringField(*process, {"state"}) == "Succeeded";
  if (!has_failed) return;
  if (is_cause) {
    Json* const statuses = pod->FindMutable("status")->FindMutable("containerStatuses");
    if (process == nullptr || statuses == nullptr) return;
    for (Json& status : *statuses->mutable_items()) {
      if (StringField(status, {"name"}) == kTrainingContainer)
        SetField(&status, {"state", "terminated", "reason"}, "process " + NameOfTask(task));
    }
    return;
  }
  SetField(pod, {"status", "phase"}, is_done ? "Succeeded" : "Ended");
  EraseField(pod, {"status", "containerStatuses"});
}

}  // namespace

void DressSharedContainer(const JobView& view, const TaskPack& pack, Json* container) {
  Json common = CommonVariables(view, pack);
  Json processes = Json::MakeArray();
  for (const TaskId& task : pack) processes.Append(ProcessOf(view, task, common));
  Json variable;
  variable.Set("name", "WEFT_PROCESSES");
  variable.Set("value", processes.Dump());
  common.Append(std::move(variable));
  const int64_t limit = view.job.run_policy.backoff_limit.value_or(kMostRestarts);
  std::vector<std::string> command = {"weft", "exec", "--restart_limit",
                                      absl::StrCat(std::min(limit, kMostRestarts))};
  const bool are_moving = AreMovingServers(view, pack);
  if (are_moving) {
    // All of the pod's own but a second: they wait in it for those that take them over.
    const Json& written = view.job.Find(pack.front().type)->pod.written;
    const int64_t grace = GraceOfMoving(written);
    command.insert(command.end(), {"--grace", absl::StrCat(std::max<int64_t>(grace - 1, 0))});
  }
  container->Set("command", WordList(command));
  container->Erase("args");
  container->Erase("workingDir");
  container->Set("env", std::move(common));
  container->Set("ports", PortsOf(view, pack));
  if (are_moving) return;
  Json resources = SumOfResources(view, pack);
  if (resources.size() > 0) container->Set("resources", std::move(resources));
}

std::vector<ObjectPtr> UnpackTasks(const std::vector<ObjectPtr>& pods) {
  std::vector<ObjectPtr> unpacked;
  for (const ObjectPtr& pod : pods) {
    const std::string tasks = StringField(*pod, {"metadata", "annotations", kTasksAnnotation});
    const TaskPack pack = tasks.empty() ? TaskPack() : ParsePack(tasks);
    if (pack.size() < 2) {
      unpacked.push_back(pod);
      continue;
    }
    const bool is_finished = IsFinishedPod(*pod);
    const Json* const end = is_finished ? EndOf(*pod) : nullptr;
    Json report;
    if (end != nullptr)
      report = Json::Parse(StringField(*end, {"message"}), {.max_bytes = 8 << 10, .max_depth = 8})
                   .value_or(Json());
    const TaskId cause = CauseOf(report, pack);
    for (const TaskId& task : pack) {
      Json copy = *pod;
      const bool leads = task == pack.front();
      SetField(&copy, {"metadata", "labels", kTypeLabel}, ReplicaTypeName(task.type));
      SetField(&copy, {"metadata", "labels", kIndexLabel}, absl::StrCat(task.index));
      if (!leads) EraseField(&copy, {"metadata", "labels", kRoleLabel});
      if (is_finished) SetEnd(report, task, task == cause, &copy);
      unpacked.push_back(std::make_shared<const Json>(std::move(copy)));
    }
  }
  return unpacked;
}

std::vector<ObjectPtr> PodsOfTasks(const std::vector<ObjectPtr>& tasks,
                                   const std::vector<ObjectPtr>& pods) {
  std::vector<ObjectPtr> whole;
  std::set<std::string> names;
  for (const ObjectPtr& task : tasks) {
    if (!names.insert(NameOf(*task)).second) continue;
    const auto pod = std::find_if(pods.begin(), pods.end(), [&](const ObjectPtr& each) {
      return NameOf(*each) == NameOf(*task);
    });
    whole.push_back(pod == pods.end() ? task : *pod);
  }
  return whole;
}

}  // namespace weft::platform
