// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/script.h"

#include <utility>

#include "absl/strings/str_cat.h"

#include "platform/object/fields.h"
#include "platform/simulation/job_draw.h"

namespace weft::platform::simulation {
namespace {

using Kind = Action::Kind;

constexpr char kSpace[] = "default";
constexpr absl::Duration kJumpLength = absl::Seconds(1100000);
template <typename Value>
bool ChangeJob(SimulatedCluster* cluster, const std::string& name, void (*change)(Value, Json*),
               Value value) {
  const ObjectPtr held = cluster->Job(name);
  if (held == nullptr) return false;
  Json job = *held;
  change(value, &job);
  const ResourceType& type = TypeOfJob(name, cluster->setting());
  return cluster->store()->Update(type, std::move(job), {}).ok();
}

bool CreatePod(SimulatedCluster* cluster, const std::string& name) {
  StatusOr<Json> pod = Json::Parse(
      R"({"apiVersion":"v1","kind":"Pod","metadata":{},"spec":{"restartPolicy":"Never",
          "containers":[{"name":"foreign","image":"i"}]}})");
  if (!pod.ok()) return false;
  SetField(&*pod, {"metadata", "name"}, name);
  return cluster->store()->Create(Pods(), kSpace, *std::move(pod), {}).ok();
}

// A task ends as programs do; a TensorBoard, which its node starts again, only by an eviction.
void DrawEnd(const SimulatedCluster& cluster, uint64_t choice, Random* random, Action* action) {
  static constexpr int64_t kCodes[] = {137, 137, 143, 130, 1, -1, 0, 0};
  action->kind = Kind::kEndPod;
  action->number = kCodes[random->Below(std::size(kCodes))];
  if (cluster.IsBoard(action->pod)) action->number = -1;
  if (choice == 8) action->kind = Kind::kRestartInPlace;
  if (choice == 9 || choice == 10) action->kind = Kind::kDeletePod;
}

// Of a job that has not ended.
Action DrawForRunning(const SimulatedCluster& cluster, const std::string& name, const Json& job,
                      bool may_jump, Random* random) {
  Action action;
  action.job = name;
  const std::vector<std::string> pods = cluster.RunningPods(name);
  const uint64_t choice = random->Below(19);
  if (!pods.empty() && choice < 11) {
    action.pod = pods[random->Below(pods.size())];
    DrawEnd(cluster, choice, random, &action);
    return action;
  }
  const int64_t workers = WorkersOf(job);
  action.kind = Kind::kScale;
  action.number = workers > 1 && random->OneIn(2) ? workers - 1 : workers + 1;
  if (choice >= 11 && choice <= 13 && MaySuspend(job)) action.kind = Kind::kSuspend;
  if (choice == 14) action.kind = Kind::kDeleteJob;
  if (choice == 15 && may_jump) action.kind = Kind::kJump;
  if (choice == 16) action.kind = Kind::kDeleteInForeground;
  if (choice == 17) {
    action.kind = Kind::kSetServers;
    action.number = ServersOf(job) > 0 ? 0 : 1;
  }
  const std::vector<std::string> services = cluster.ServicesOf(name);
  if (choice == 18 && !services.empty()) {
    action.kind = Kind::kDeleteService;
    action.pod = services[random->Below(services.size())];
  }
  return action;
}

Action DrawForSuspended(const std::string& name, bool may_jump, Random* random) {
  Action action;
  action.job = name;
  action.kind = random->OneIn(5) ? Kind::kDeleteJob : Kind::kResume;
  if (may_jump && random->OneIn(2)) action.kind = Kind::kJump;
  return action;
}

}  // namespace

std::string Describe(const Action& action) {
  static constexpr const char* kNames[] = {"create",
                                           "scale",
                                           "set servers",
                                           "suspend",
                                           "resume",
                                           "end pod",
                                           "restart in place",
                                           "delete pod",
                                           "delete service",
                                           "delete job",
                                           "delete job in the foreground",
                                           "jump",
                                           "squat",
                                           "unsquat",
                                           "close the queue",
                                           "open the queue"};
  return absl::StrCat(kNames[static_cast<size_t>(action.kind)], " ", action.job, " ", action.pod,
                      " ", action.number, action.object.is_null() ? "" : " ",
                      action.object.is_null() ? "" : action.object.Dump());
}

bool Apply(const Action& action, SimulatedCluster* cluster) {
  EmbeddedStore* const store = cluster->store();
  DeleteOptions at_once;
  at_once.grace_seconds = 0;
  DeleteOptions foreground;
  foreground.propagation = Propagation::kForeground;
  const ResourceType& type = TypeOfJob(action.job, cluster->setting());
  switch (action.kind) {
    case Kind::kCreate:
      return store->Create(type, kSpace, action.object, {}).ok();
    case Kind::kScale:
      return ChangeJob(cluster, action.job, &SetWorkers, action.number);
    case Kind::kSetServers:
      return ChangeJob(cluster, action.job, &SetServers, action.number);
    case Kind::kSuspend:
    case Kind::kResume:
      return ChangeJob(cluster, action.job, &SetSuspended, action.kind == Kind::kSuspend);
    case Kind::kEndPod:
      return cluster->EndPod(action.pod, action.number);
    case Kind::kRestartInPlace:
      return cluster->RestartInPlace(action.pod);
    case Kind::kDeletePod:
      return store->Delete(Pods(), {kSpace, action.pod}, {}).ok();
    case Kind::kDeleteService:
      return store->Delete(Services(), {kSpace, action.pod}, {}).ok();
    case Kind::kDeleteJob:
      return store->Delete(type, {kSpace, action.job}, {}).ok();
    case Kind::kDeleteInForeground:
      return store->Delete(type, {kSpace, action.job}, foreground).ok();
    case Kind::kJump:
      cluster->clock()->Advance(kJumpLength);
      return true;
    case Kind::kSquat:
      return CreatePod(cluster, action.pod);
    case Kind::kUnsquat:
      return store->Delete(Pods(), {kSpace, action.pod}, at_once).ok();
    case Kind::kCloseQueue:
    case Kind::kOpenQueue:
      cluster->OpenQueue(action.kind == Kind::kOpenQueue);
      return true;
  }
  return false;
}

Action DrawAction(const SimulatedCluster& cluster, bool may_jump, Random* random) {
  Action action;
  const bool is_closed = !cluster.IsQueueOpen();
  const bool has_queue = cluster.setting().gang_scheduler == "volcano";
  if (has_queue && random->OneIn(is_closed ? 3 : 12)) {
    action.kind = is_closed ? Kind::kOpenQueue : Kind::kCloseQueue;
    return action;
  }
  action.job = random->OneIn(3) ? "b" : "a";
  const std::string squatted = absl::StrCat(action.job, "-worker-0");
  const ObjectPtr job = cluster.Job(action.job);
  if (cluster.HasForeignPod(squatted)) {
    action.kind = job == nullptr ? Kind::kCreate : Kind::kUnsquat;
    action.pod = job == nullptr ? "" : squatted;
    if (job == nullptr) action.object = DrawJob(action.job, cluster.setting(), may_jump, random);
    return action;
  }
  if (job == nullptr) {
    if (random->OneIn(6)) {
      action.kind = Kind::kSquat;
      action.pod = squatted;
    } else {
      action.object = DrawJob(action.job, cluster.setting(), may_jump, random);
    }
    return action;
  }
  if (IsConditionTrue(*job, "Succeeded") || IsConditionTrue(*job, "Failed")) {
    const std::vector<std::string> ended = cluster.EndedPods(action.job);
    action.kind = may_jump && random->OneIn(2) ? Kind::kJump : Kind::kDeleteJob;
    if (!ended.empty() && random->OneIn(2)) {
      action.kind = Kind::kDeletePod;
      action.pod = ended[random->Below(ended.size())];
    }
    return action;
  }
  if (IsSuspended(*job)) return DrawForSuspended(action.job, may_jump, random);
  return DrawForRunning(cluster, action.job, *job, may_jump, random);
}

}  // namespace weft::platform::simulation
