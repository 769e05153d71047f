// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

#include "platform/jobs/pod_group.h"
#include "platform/jobs/task_objects.h"
#include "platform/jobs/tensorboard_objects.h"
#include "platform/object/fields.h"

namespace weft::platform::simulation {
namespace {

constexpr char kSpace[] = "default";
constexpr absl::Duration kSlowestNode = absl::Seconds(2);

std::string PhaseOf(const Json& pod) { return StringField(pod, {"status", "phase"}); }

std::string LabelOf(const Json& pod, absl::string_view name) {
  return StringField(pod, {"metadata", "labels", absl::StrCat("training.kubeflow.org/", name)});
}

int64_t AttemptOf(const Json& pod) {
  int64_t attempt = 0;
  const std::string text = StringField(pod, {"metadata", "labels", kAttemptLabel});
  return absl::SimpleAtoi(text, &attempt) ? attempt : 0;
}

bool IsBoardPod(const Json& pod) { return LabelOf(pod, "replica-type") == kTensorBoardType; }

// A status of its only container, of which nothing is known but the name.
Json ContainerOf(const Json& pod) {
  Json container;
  const Json* const containers = FindField(pod, {"spec", "containers"});
  container.Set("name", StringField(containers->items().front(), {"name"}));
  return container;
}

std::string TaskOf(const Json& pod) {
  return absl::StrCat(LabelOf(pod, "job-name"), "/", LabelOf(pod, "replica-type"), "/",
                      LabelOf(pod, "replica-index"));
}

bool IsFinished(const Json& job) {
  return IsConditionTrue(job, "Succeeded") || IsConditionTrue(job, "Failed");
}

std::string DescribeJob(const Json& job) {
  std::set<std::string> words;
  if (const Json* const conditions = FindField(job, {"status", "conditions"})) {
    for (const Json& held : conditions->items()) {
      words.insert(absl::StrCat(StringField(held, {"type"}), "=", StringField(held, {"status"}),
                                "/", StringField(held, {"reason"})));
    }
  }
  if (const Json* const counts = FindField(job, {"status", "replicaStatuses"})) {
    // What was active in the moment of the end is as the controller knew it then.
    for (const JsonMember& type : counts->members()) {
      words.insert(absl::StrCat(type.name, ":",
                                IsFinished(job) ? 0 : IntField(type.value, {"active"}), ",",
                                IsFinished(job) ? 0 : IntField(type.value, {"succeeded"}), ",",
                                IntField(type.value, {"failed"})));
    }
  }
  if (const Json* const restarts = FindField(job, {"status", "restarts"})) {
    for (const JsonMember& task : restarts->members()) {
      words.insert(absl::StrCat(task.name, " restarted ", IntField(task.value, {"count"})));
    }
  }
  for (const char* time : {"startTime", "completionTime"}) {
    if (!StringField(job, {"status", time}).empty()) words.insert(time);
  }
  std::string text = absl::StrCat("generation ", IntField(job, {"metadata", "generation"}),
                                  IsTerminating(job) ? " terminating" : "");
  for (const std::string& word : words) absl::StrAppend(&text, " ", word);
  return text;
}

}  // namespace

std::string Difference(const State& wanted, const State& found) {
  std::string text;
  for (const auto& [key, value] : wanted) {
    const auto other = found.find(key);
    if (other == found.end()) {
      absl::StrAppend(&text, "  ", key, ": missing, should be: ", value, "\n");
    } else if (other->second != value) {
      absl::StrAppend(&text, "  ", key, ": is: ", other->second, "\n    should be: ", value, "\n");
    }
  }
  for (const auto& [key, value] : found) {
    if (wanted.count(key) == 0)
      absl::StrAppend(&text, "  ", key, ": should not be there: ", value, "\n");
  }
  return text;
}

SimulatedCluster::SimulatedCluster(uint64_t seed, const Setting& setting)
    : setting_(setting), random_(seed) {
  EmbeddedStore::Options options;
  options.clock = &clock_;
  options.random = [this] { return random_.Next(); };
  StatusOr<std::unique_ptr<EmbeddedStore>> store = EmbeddedStore::Open(std::move(options));
  if (!store.ok()) {
    Complain(std::string(store.status().message()));
    return;
  }
  store_ = *std::move(store);
  Json space;
  SetField(&space, {"metadata", "name"}, "weft-system");
  const Status made = store_->Create(Namespaces(), "", std::move(space), {}).status();
  if (!made.ok()) Complain(std::string(made.message()));
  const auto watch = [this](const ResourceType& type,
                            void (SimulatedCluster::*on_event)(const WatchEvent&)) {
    StatusOr<std::unique_ptr<Watch>> started = store_->StartWatch(
        type, {}, [this, on_event](const WatchEvent& event) { (this->*on_event)(event); });
    if (!started.ok()) return Complain(std::string(started.status().message()));
    watches_.push_back(*std::move(started));
  };
  watch(TfJobs(), &SimulatedCluster::OnJob);
  if (setting_.has_compact) watch(Tensorflows(), &SimulatedCluster::OnJob);
  watch(Pods(), &SimulatedCluster::OnPod);
  watch(Services(), &SimulatedCluster::OnService);
  if (!setting_.gang_scheduler.empty()) {
    watch(PodGroupType(setting_.gang_scheduler), &SimulatedCluster::OnGroup);
  }
}

SimulatedCluster::~SimulatedCluster() { watches_.clear(); }

void SimulatedCluster::Set(const std::string& key, const std::string& text) {
  const auto [held, is_new] = state_.try_emplace(key, text);
  if (!is_new && held->second == text) return;
  held->second = text;
  ++changes_;
}

void SimulatedCluster::Drop(const std::string& key) {
  state_.erase(key);
  ++changes_;
}

void SimulatedCluster::OnJob(const WatchEvent& event) {
  const std::string name = NameOf(*event.object);
  if (event.kind == WatchEvent::Kind::kDeleted) {
    jobs_.erase(name);
    return Drop(absl::StrCat("job ", name));
  }
  const ObjectPtr previous = std::exchange(jobs_[name], event.object);
  if (previous != nullptr && UidOf(*previous) == UidOf(*event.object))
    CheckJob(*previous, *event.object);
  Set(absl::StrCat("job ", name), DescribeJob(*event.object));
}

// An end is for ever, and nothing that was counted is forgotten.
void SimulatedCluster::CheckJob(const Json& previous, const Json& job) {
  for (const char* end : {"Succeeded", "Failed"}) {
    if (IsConditionTrue(previous, end) && !IsConditionTrue(job, end))
      Complain(absl::StrCat("job ", NameOf(job), " is no more ", end));
    if (IsFinished(previous) && !IsConditionTrue(previous, end) && IsConditionTrue(job, end)) {
      Complain(absl::StrCat("job ", NameOf(job), " ended a second time: ", end));
    }
  }
  const Json* const restarts = FindField(previous, {"status", "restarts"});
  if (restarts == nullptr) return;
  for (const JsonMember& task : restarts->members()) {
    if (IntField(job, {"status", "restarts", task.name, "count"}) <
        IntField(task.value, {"count"})) {
      Complain(absl::StrCat("restarts of ", NameOf(job), " ", task.name, " are forgotten"));
    }
  }
}

void SimulatedCluster::OnPod(const WatchEvent& event) {
  const std::string name = NameOf(*event.object);
  if (event.kind == WatchEvent::Kind::kDeleted) {
    pods_.erase(name);
    node_work_.erase(name);
    WakeGangs();
    return Drop(absl::StrCat("pod ", name));
  }
  pods_[name] = event.object;
  WakeGangs();
  node_work_[name] = clock_.Monotonic() + random_.UpTo(kSlowestNode);
  if (pod_uids_.insert(UidOf(*event.object)).second) {
    CheckNewPod(*event.object);
    CheckOneLivePod(*event.object);
    CheckAttempts(*event.object);
    CheckAdmission(*event.object);
  }
  Set(absl::StrCat("pod ", name),
      absl::StrCat(PhaseOf(*event.object), IsTerminating(*event.object) ? " terminating" : "",
                   " run ", runs_[name]));
}

void SimulatedCluster::CheckNewPod(const Json& pod) {
  const Json* const owner = ControllerOf(pod);
  if (owner == nullptr) return;
  const auto job = jobs_.find(StringField(*owner, {"name"}));
  if (job == jobs_.end() || UidOf(*job->second) != StringField(*owner, {"uid"})) return;
  if (IsFinished(*job->second))
    Complain(absl::StrCat("pod ", NameOf(pod), " is made for a job that has ended"));
}

void SimulatedCluster::CheckOneLivePod(const Json& pod) {
  if (ControllerOf(pod) == nullptr) return;
  for (const auto& [name, other] : pods_) {
    if (name == NameOf(pod) || IsFinishedPod(*other) || TaskOf(*other) != TaskOf(pod)) continue;
    Complain(absl::StrCat("two live pods for one task: ", name, " and ", NameOf(pod)));
  }
}

// The whole of a job starts again only when nothing of it is left.
void SimulatedCluster::CheckAttempts(const Json& pod) {
  if (ControllerOf(pod) == nullptr || IsBoardPod(pod)) return;
  for (const auto& [name, other] : pods_) {
    if (LabelOf(*other, "job-name") != LabelOf(pod, "job-name") || IsBoardPod(*other)) continue;
    if (UidOf(*ControllerOf(*other)) != UidOf(*ControllerOf(pod))) continue;
    if (AttemptOf(*other) < AttemptOf(pod)) {
      Complain(absl::StrCat("pod ", NameOf(pod), " is made while ", name,
                            " of an earlier attempt is there"));
    }
  }
}

void SimulatedCluster::CheckAdmission(const Json& pod) {
  if (setting_.gang_scheduler != "volcano" || GangNameOf(pod).empty()) return;
  const auto group = groups_.find(GangNameOf(pod));
  if (group != groups_.end() && MayStart(group->second.get(), setting_.gang_scheduler)) return;
  Complain(absl::StrCat("pod ", NameOf(pod), " is made before its gang is let in"));
}

void SimulatedCluster::OnGroup(const WatchEvent& event) {
  const std::string name = NameOf(*event.object);
  const std::string key = absl::StrCat("gang ", name);
  WakeGangs();
  if (event.kind == WatchEvent::Kind::kDeleted) {
    groups_.erase(name);
    group_work_.erase(name);
    return Drop(key);
  }
  groups_[name] = event.object;
  if (is_queue_open_) group_work_[name] = clock_.Monotonic() + random_.UpTo(kSlowestNode);
  Set(key, absl::StrCat("of ", IntField(*event.object, {"spec", "minMember"}), " ",
                        PhaseOf(*event.object)));
}

void SimulatedCluster::OpenQueue(bool is_open) {
  is_queue_open_ = is_open;
  group_work_.clear();
  if (!is_open) return;
  for (const auto& [name, group] : groups_) {
    group_work_[name] = clock_.Monotonic() + random_.UpTo(kSlowestNode);
  }
}

void SimulatedCluster::OnService(const WatchEvent& event) {
  const std::string key = absl::StrCat("service ", NameOf(*event.object));
  if (event.kind == WatchEvent::Kind::kDeleted) {
    services_.erase(NameOf(*event.object));
    return Drop(key);
  }
  services_[NameOf(*event.object)] = event.object;
  Set(key, "");
}

void SimulatedCluster::CheckOrphans() {
  for (const auto* objects : {&pods_, &services_, &groups_}) {
    for (const auto& [name, object] : *objects) {
      const Json* const owner = ControllerOf(*object);
      const auto job = owner == nullptr ? jobs_.end() : jobs_.find(StringField(*owner, {"name"}));
      const bool is_owned =
          job != jobs_.end() && UidOf(*job->second) == StringField(*owner, {"uid"});
      if (!is_owned)
        Complain(absl::StrCat(StringField(*object, {"kind"}), " ", name, " is an orphan"));
    }
  }
}

absl::Duration SimulatedCluster::NextNodeWork() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto* all : {&node_work_, &group_work_}) {
    for (const auto& [name, due] : *all) next = std::min(next, due);
  }
  return next;
}

bool SimulatedCluster::IsGangComplete(const Json& pod) const {
  if (setting_.gang_scheduler.empty() || GangNameOf(pod).empty()) return true;
  const auto group = groups_.find(GangNameOf(pod));
  if (group == groups_.end()) return false;
  const auto members = std::count_if(pods_.begin(), pods_.end(), [&](const auto& other) {
    return GangNameOf(*other.second) == GangNameOf(pod);
  });
  return members >= IntField(*group->second, {"spec", "minMember"});
}

// Pods that had to wait for others may go on.
void SimulatedCluster::WakeGangs() {
  if (setting_.gang_scheduler.empty()) return;
  for (const auto& [name, pod] : pods_) {
    if (!GangNameOf(*pod).empty() && StringField(*pod, {"spec", "nodeName"}).empty()) {
      node_work_.try_emplace(name, clock_.Monotonic() + random_.UpTo(kSlowestNode));
    }
  }
}

void SimulatedCluster::DoGroupWork(const std::string& name) {
  Json group = *groups_[name];
  const std::string phase = PhaseOf(group);
  if (phase == "Inqueue" || setting_.gang_scheduler != "volcano") return;
  SetField(&group, {"status", "phase"}, phase.empty() ? "Pending" : "Inqueue");
  WriteOptions options;
  options.subresource = "status";
  const Status status =
      store_->Update(PodGroupType(setting_.gang_scheduler), std::move(group), options).status();
  if (!status.ok()) Complain(absl::StrCat("a gang could not be let in: ", status.message()));
}

void SimulatedCluster::DoNodeWork() {
  const auto is_sooner = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto first = std::min_element(node_work_.begin(), node_work_.end(), is_sooner);
  const auto group = std::min_element(group_work_.begin(), group_work_.end(), is_sooner);
  const bool is_group =
      group != group_work_.end() && (first == node_work_.end() || group->second < first->second);
  if (is_group) {
    const std::string name = group->first;
    group_work_.erase(group);
    DoGroupWork(name);
  } else if (first != node_work_.end()) {
    const std::string name = first->first;
    node_work_.erase(first);
    DoPodWork(name);
  }
}

void SimulatedCluster::DoPodWork(const std::string& name) {
  Json pod = *pods_[name];
  Status status = absl::OkStatus();
  if (IsTerminating(pod)) {
    DeleteOptions options;
    options.grace_seconds = 0;
    status = store_->Delete(Pods(), {kSpace, name}, options).status();
  } else if (StringField(pod, {"spec", "nodeName"}).empty()) {
    if (!IsGangComplete(pod)) return;
    SetField(&pod, {"spec", "nodeName"}, "node");
    WriteOptions options;
    options.subresource = "binding";
    status = store_->Update(Pods(), std::move(pod), options).status();
  } else if (PhaseOf(pod) == "Pending") {
    ++runs_[name];
    SetField(&pod, {"status", "phase"}, "Running");
    Json container = ContainerOf(pod);
    SetField(&pod, {"status", "containerStatuses"}, Json(Json::Array{std::move(container)}));
    WriteOptions options;
    options.subresource = "status";
    status = store_->Update(Pods(), std::move(pod), options).status();
  }
  if (!status.ok()) Complain(absl::StrCat("a node could not do its work: ", status.message()));
}

bool SimulatedCluster::EndPod(const std::string& name, int64_t code) {
  const auto found = pods_.find(name);
  if (found == pods_.end() || PhaseOf(*found->second) != "Running") return false;
  Json pod = *found->second;
  SetField(&pod, {"status", "phase"}, code == 0 ? "Succeeded" : "Failed");
  if (code < 0) {
    SetField(&pod, {"status", "reason"}, "Evicted");
    EraseField(&pod, {"status", "containerStatuses"});
  } else {
    Json container = ContainerOf(pod);
    SetField(&container, {"state", "terminated", "exitCode"}, code);
    SetField(&pod, {"status", "containerStatuses"}, Json(Json::Array{std::move(container)}));
  }
  WriteOptions options;
  options.subresource = "status";
  return store_->Update(Pods(), std::move(pod), options).ok();
}

bool SimulatedCluster::RestartInPlace(const std::string& name) {
  const auto found = pods_.find(name);
  if (found == pods_.end() || PhaseOf(*found->second) != "Running") return false;
  Json pod = *found->second;
  Json container = ContainerOf(pod);
  const Json* const held = FindField(pod, {"status", "containerStatuses"});
  const int64_t restarts =
      held == nullptr || held->size() == 0 ? 0 : IntField(held->items()[0], {"restartCount"});
  container.Set("restartCount", restarts + 1);
  SetField(&pod, {"status", "containerStatuses"}, Json(Json::Array{std::move(container)}));
  WriteOptions options;
  options.subresource = "status";
  return store_->Update(Pods(), std::move(pod), options).ok();
}

ObjectPtr SimulatedCluster::Job(const std::string& name) const {
  const auto found = jobs_.find(name);
  return found == jobs_.end() ? nullptr : found->second;
}

bool SimulatedCluster::HasForeignPod(const std::string& name) const {
  const auto found = pods_.find(name);
  return found != pods_.end() && ControllerOf(*found->second) == nullptr;
}

std::vector<std::string> SimulatedCluster::EndedPods(const std::string& job) const {
  std::vector<std::string> names;
  for (const auto& [name, pod] : pods_) {
    if (LabelOf(*pod, "job-name") == job && IsFinishedPod(*pod)) names.push_back(name);
  }
  return names;
}

std::vector<std::string> SimulatedCluster::RunningPods(const std::string& job) const {
  std::vector<std::string> names;
  for (const auto& [name, pod] : pods_) {
    if (LabelOf(*pod, "job-name") == job && PhaseOf(*pod) == "Running" && !IsTerminating(*pod))
      names.push_back(name);
  }
  return names;
}

std::vector<std::string> SimulatedCluster::ServicesOf(const std::string& job) const {
  std::vector<std::string> names;
  for (const auto& [name, service] : services_) {
    if (LabelOf(*service, "job-name") == job && !IsTerminating(*service)) names.push_back(name);
  }
  return names;
}

bool SimulatedCluster::IsBoard(const std::string& pod) const {
  const auto found = pods_.find(pod);
  return found != pods_.end() && IsBoardPod(*found->second);
}

}  // namespace weft::platform::simulation
