// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/server_moves.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/jobs/packed_pod.h"
#include "platform/jobs/pod_group.h"
#include "platform/object/fields.h"
#include "platform/object/pod_annotations.h"
#include "platform/object/pod_view.h"
#include "platform/object/training_job_view.h"

namespace weft::platform {
namespace {

constexpr char kServers[] = "servers";

bool IsServer(const Json& pod) {
  return PodView(pod).label(kTypeLabel) == ReplicaTypeName(ReplicaType::kPs);
}

// Of a pod or of what stands for it in the planner's eyes; -1: it is no parameter server.
int64_t IndexOf(const Json& pod) {
  int64_t index = -1;
  return absl::SimpleAtoi(PodView(pod).label(kIndexLabel), &index) ? index : -1;
}

TaskPack TasksOf(const Json& pod) {
  const std::string shared = PodView(pod).annotation(kTasksAnnotation);
  return shared.empty() ? TaskPack{{ReplicaType::kPs, IndexOf(pod)}} : ParsePack(shared);
}

bool Has(const TaskPack& tasks, const TaskId& task) { return absl::c_linear_search(tasks, task); }

std::string CountOf(int64_t count, const char* what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

}  // namespace

std::vector<TaskPack> SpreadServers(int64_t tasks, int64_t pods) {
  std::vector<TaskPack> spread(static_cast<size_t>(pods));
  for (int64_t i = 0; i < tasks; ++i)
    spread[static_cast<size_t>(i * pods / tasks)].push_back({ReplicaType::kPs, i});
  return spread;
}

ServerMoves::ServerMoves(const JobObservation& observation)
    : told_(observation),
      servers_(*observation.view.job.ElasticServers()),
      seen_(observation),
      rests_(observation.view.job.run_policy.suspend ||
             TrainingJobView(*observation.view.object).is_finished()),
      known_(IntField(*observation.view.object, {"status", kServers, "pods"})) {
  count_ = known_ > 0 && known_ <= servers_.replicas ? known_ : servers_.server_pods->count;
  Classify();
  if (count_ != servers_.server_pods->count && (rests_ || !IsOnItsWay())) {
    count_ = servers_.server_pods->count;
    Classify();
  }
  for (const TaskPack& tasks : wanted_) {
    if (tasks.size() > 1) seen_.view.packs.push_back(tasks);
  }
  seen_.pods = UnpackTasks(told_.pods);
  if (!rests_) ShowTasks();
}

void ServerMoves::Classify() {
  wanted_ = SpreadServers(servers_.replicas, count_);
  holders_.clear();
  for (const ObjectPtr& pod : told_.pods) {
    if (!IsServer(*pod)) continue;
    Holder holder{.pod = pod, .tasks = TasksOf(*pod), .runs = PodView(*pod).is_running()};
    holder.is_wanted = !IsTerminating(*pod) && absl::c_linear_search(wanted_, holder.tasks);
    holders_.push_back(std::move(holder));
  }
}

const ServerMoves::Holder* ServerMoves::WantedOf(const TaskId& task) const {
  for (const Holder& holder : holders_) {
    if (holder.is_wanted && Has(holder.tasks, task)) return &holder;
  }
  return nullptr;
}

std::vector<const ServerMoves::Holder*> ServerMoves::LeavingOf(const TaskId& task) const {
  std::vector<const Holder*> leaving;
  for (const Holder& holder : holders_) {
    if (!holder.is_wanted && Has(holder.tasks, task)) leaving.push_back(&holder);
  }
  return leaving;
}

// Of two pods that run nobody but they know which has the task.
bool ServerMoves::IsOnItsWay() const {
  for (const TaskPack& tasks : wanted_) {
    for (const TaskId& task : tasks) {
      int running = 0;
      for (const Holder& holder : holders_) running += holder.runs && Has(holder.tasks, task);
      if (running > 1) return true;
    }
  }
  return false;
}

void ServerMoves::ShowTasks() {
  std::map<int64_t, const Json*> shown;
  for (const TaskPack& tasks : wanted_) {
    for (const TaskId& task : tasks) {
      const Holder* const wanted = WantedOf(task);
      const std::vector<const Holder*> leaving = LeavingOf(task);
      const auto running = absl::c_find_if(leaving, [](const Holder* each) { return each->runs; });
      const Holder* one = running != leaving.end() ? *running
                          : leaving.empty()        ? nullptr
                                                   : leaving.front();
      // One that has failed is to be seen, though the task is still elsewhere.
      if (wanted != nullptr && (one == nullptr || wanted->runs || IsFinishedPod(*wanted->pod)))
        one = wanted;
      if (one != nullptr) shown[task.index] = one->pod.get();
    }
  }
  std::vector<ObjectPtr> pods;
  for (ObjectPtr& pod : seen_.pods) {
    if (IsServer(*pod)) {
      const auto at = shown.find(IndexOf(*pod));
      if (at == shown.end() || NameOf(*at->second) != NameOf(*pod)) continue;
    }
    pods.push_back(std::move(pod));
  }
  seen_.pods = std::move(pods);
}

void ServerMoves::TakeOver(const TaskPack& tasks, JobPlan* plan) const {
  JobView view = seen_.view;
  std::set<std::string> from;
  for (const TaskId& task : tasks) {
    std::vector<const Holder*> sources = LeavingOf(task);
    sources.erase(std::remove_if(sources.begin(), sources.end(),
                                 [](const Holder* each) { return !each->runs; }),
                  sources.end());
    if (sources.size() > 1) return;  // one of them is about to end
    if (sources.empty()) continue;
    view.taken_from[task] = AddressIn(view, task, *sources.front()->pod);
    from.insert(NameOf(*sources.front()->pod));
  }
  if (from.empty()) return;  // they begin here
  const JobStatus status(plan->status, told_.view.job.kind, told_.now);
  absl::Time due = absl::InfinitePast();
  for (const TaskId& task : tasks)
    due = std::max(due, status.NextStart(NameOfTask(task), told_.first_wait, told_.longest_wait));
  if (due > told_.now) {
    plan->look_again = std::min(plan->look_again, due - told_.now);
    return;
  }
  Json pod = MakeTaskPod(view, servers_, tasks.front().index);
  const auto is_there = [&](const std::string& name) {
    return absl::c_any_of(told_.pods, [&](const ObjectPtr& each) { return NameOf(*each) == name; });
  };
  std::string name = NameOf(pod);
  if (is_there(name)) name = NextPodName(name, name);
  if (is_there(name)) return;  // until one of them is gone
  SetField(&pod, {"metadata", "name"}, name);
  if (!told_.gang_scheduler.empty()) {
    if (!MayStart(told_.pod_group.get(), told_.gang_scheduler)) return;
    JoinPodGroup(view, told_.gang_scheduler, ReplicaType::kPs, &pod);
    plan->needs_admission = !MayStart(nullptr, told_.gang_scheduler);
  }
  plan->events.push_back({"Normal", "ServersMove",
                          absl::StrCat(name, " takes ", FormatPack(tasks), " over from ",
                                       absl::StrJoin(from, " and "), " while steps go on.")});
  plan->create_pods.push_back(std::move(pod));
}

void ServerMoves::EndPod(const Holder& holder, JobPlan* plan) const {
  if (holder.is_wanted || IsTerminating(*holder.pod)) return;
  const bool are_elsewhere = absl::c_all_of(holder.tasks, [&](const TaskId& task) {
    const Holder* const wanted = WantedOf(task);
    return wanted != nullptr && wanted->runs;
  });
  // One that has not begun holds nothing, and of one that has ended nothing is left.
  if (holder.runs && !are_elsewhere) return;
  plan->delete_pods.push_back(holder.pod);
}

void ServerMoves::Finish(JobPlan* plan) const {
  JobStatus status(plan->status, told_.view.job.kind, told_.now);
  if (rests_ || status.IsFinished()) {
    plan->delete_pods = PodsOfTasks(plan->delete_pods, told_.pods);
    return;
  }
  for (const TaskPack& tasks : wanted_) {
    if (WantedOf(tasks.front()) != nullptr) continue;
    const bool is_held = absl::c_any_of(tasks, [&](const TaskId& task) {
      return absl::c_any_of(LeavingOf(task), [](const Holder* each) { return each->runs; });
    });
    if (!is_held) continue;
    // The planner, who does not see it whole, may have thought that the tasks begin.
    plan->create_pods.erase(std::remove_if(plan->create_pods.begin(), plan->create_pods.end(),
                                           [&](const Json& pod) {
                                             return IsServer(pod) &&
                                                    TasksOf(pod).front() == tasks.front();
                                           }),
                            plan->create_pods.end());
    TakeOver(tasks, plan);
  }
  for (const Holder& holder : holders_) EndPod(holder, plan);
  plan->delete_pods = PodsOfTasks(plan->delete_pods, told_.pods);
  Tell(plan);
}

void ServerMoves::Tell(JobPlan* plan) const {
  const bool was_moving = FindField(*told_.view.object, {"status", kServers, "moving"}) != nullptr;
  const bool is_moving =
      absl::c_any_of(holders_, [](const Holder& each) { return !each.is_wanted && each.runs; });
  Json servers;
  servers.Set("tasks", servers_.replicas);
  servers.Set("pods", count_);
  if (is_moving) servers.Set("moving", true);
  plan->status.Set(kServers, std::move(servers));
  // The count of pods, where the planner has counted tasks.
  std::set<std::string> running;
  for (const ObjectPtr& pod : seen_.pods) {
    if (IsServer(*pod) && PodView(*pod).is_running() && !IsTerminating(*pod))
      running.insert(NameOf(*pod));
  }
  if (FindField(plan->status, {"replicaStatuses", "PS", "active"}) != nullptr)
    SetField(&plan->status, {"replicaStatuses", "PS", "active"},
             static_cast<int64_t>(running.size()));
  const std::string share =
      absl::StrCat(CountOf(servers_.replicas, "parameter server"), " in ", CountOf(count_, "pod"));
  if (known_ > 0 && known_ != count_) {
    plan->events.push_back(
        {"Normal", "ServersScaled", absl::StrCat(share, " instead of ", known_, ".")});
    // The next look goes by it, whatever happens before the pods are there.
    plan->status_first = true;
  } else if (was_moving && !is_moving) {
    plan->events.push_back({"Normal", "ServersMoved", absl::StrCat("Now ", share, ".")});
  }
}

}  // namespace weft::platform
