// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/workload_book.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/object/pod_annotations.h"
#include "platform/object/pod_view.h"
#include "platform/resources/fit.h"

namespace weft::platform {
namespace {

constexpr size_t kMostShared = 10000;
constexpr double kPartialPatience = 30;  // seconds

// What decides where a pod may go.
bool AsksTheSame(const Json& a, const Json& b) {
  const auto same = [&](FieldPath path) {
    const Json* const x = FindField(a, path);
    const Json* const y = FindField(b, path);
    return (x == nullptr) == (y == nullptr) && (x == nullptr || SameJson(*x, *y));
  };
  return same({"spec"}) && same({"metadata", "labels"}) &&
         PodView(a).annotation(kGpuSetAnnotation) == PodView(b).annotation(kGpuSetAnnotation);
}

double ProgressLeft(const Json& pod) {
  const std::string text = PodView(pod).annotation(kProgressAnnotation);
  if (text.empty()) return kForever;
  const Json report = Json::Parse(text, {.max_bytes = 16 << 10, .max_depth = 4}).value_or(Json());
  const int64_t left = IntField(report, {"secondsLeft"}, -1);
  return left < 0 ? kForever : static_cast<double>(left);
}

// What makes no sense is not known.
double DeclaredDuration(const Json& pod) {
  return ParseRunLength(PodView(pod).annotation(kDurationAnnotation)).value_or(kForever);
}

// What it reports itself, else what was declared, and never longer than it may run.
double SecondsLeft(const Json& pod, double now) {
  const std::string started = StringField(pod, {"status", "startTime"});
  const double passed =
      started.empty() ? 0
                      : now - absl::ToDoubleSeconds(ParseObjectTime(started) - absl::UnixEpoch());
  const int64_t deadline = IntField(pod, {"spec", "activeDeadlineSeconds"}, -1);
  const double allowed =
      deadline < 0 ? kForever : std::max(static_cast<double>(deadline) - passed, 0.0);
  const double reported = ProgressLeft(pod);
  // Who is over its time may go on: nobody knows how long.
  const double declared = DeclaredDuration(pod) - passed;
  const double left = reported < kForever ? reported : declared > 0 ? declared : kForever;
  return std::min(left, allowed);
}

double CreatedAt(const Json& pod, double otherwise) {
  const absl::Time created = PodView(pod).created();
  return created == absl::InfinitePast() ? otherwise
                                         : absl::ToDoubleSeconds(created - absl::UnixEpoch());
}

}  // namespace

std::string GangOf(const Json& pod) {
  const std::string name = GangNameOf(pod);
  return name.empty() ? "" : absl::StrCat(NamespaceOf(pod), "/", name);
}

WorkloadBook::WorkloadBook(Options options)
    : options_(std::move(options)),
      quotas_(options_.queues),
      dispatcher_({.order = options_.order,
                   .placement = options_.placement,
                   .state = &state_,
                   .quotas = &quotas_,
                   .backfill = options_.backfill,
                   .evicts = true,
                   .most_candidates = options_.most_candidates,
                   .depth = 1 << 30}) {}

void WorkloadBook::SetNode(const std::string& name, const Json* node) {
  has_new_capacity_ = true;
  if (!options_.only_node.empty() && name != options_.only_node) return;
  if (node == nullptr) return state_.RemoveNode(name);
  StatusOr<NodeDescription> description = ReadNode(*node, &names_);
  if (!description.ok()) {
    // What it says cannot be believed: nothing new goes there.
    NodeDescription nothing;
    nothing.name = name;
    nothing.is_unschedulable = true;
    description = std::move(nothing);
  }
  state_.SetNode(std::make_shared<NodeDescription>(*std::move(description)));
}

// One that is not known (yet) gets a number, so that who is bound to it counts when it comes.
int WorkloadBook::NodeNumber(const std::string& name) {
  const int known = state_.FindNode(name);
  if (known >= 0) return known;
  NodeDescription nothing;
  nothing.name = name;
  nothing.is_unschedulable = true;
  return state_.SetNode(std::make_shared<NodeDescription>(std::move(nothing)));
}

// Pods of one template share their needs, which makes what found no room known for all of them.
std::shared_ptr<const PodNeeds> WorkloadBook::Share(std::shared_ptr<const PodNeeds> needs,
                                                    const Json& pod) {
  Json kind;
  const Json* const spec = FindField(pod, {"spec"});
  if (spec != nullptr) {
    for (const char* part :
         {"nodeSelector", "affinity", "tolerations", "topologySpreadConstraints"})
      if (const Json* const field = spec->Find(part)) kind.Set(part, *field);
    Json resources = Json::MakeArray();
    for (const char* list : {"containers", "initContainers"}) {
      if (const Json* const containers = spec->Find(list)) {
        for (const Json& container : containers->items()) {
          for (const char* part : {"resources", "ports", "restartPolicy"})
            if (const Json* const field = container.Find(part)) resources.Append(*field);
          resources.Append(list);
        }
      }
    }
    kind.Set("resources", std::move(resources));
    if (const Json* const field = spec->Find("overhead")) kind.Set("overhead", *field);
  }
  kind.Set("namespace", needs->namespace_name);
  Json labels = Json::MakeArray();
  for (const auto& [key, value] : needs->labels) labels.Append(key + "=" + value);
  kind.Set("labels", std::move(labels));
  kind.Set("gpus", absl::StrJoin(needs->gpu.indices, ","));
  kind.Set("models", absl::StrJoin(needs->gpu.models, ","));
  if (shared_.size() > kMostShared) shared_.clear();
  std::weak_ptr<const PodNeeds>& known = shared_[kind.Dump()];
  if (std::shared_ptr<const PodNeeds> same = known.lock()) return same;
  known = needs;
  return needs;
}

std::string WorkloadBook::QueueNameOf(const Entry& entry) const {
  const PodView pod(*entry.pod);
  std::string queue = pod.label("kueue.x-k8s.io/queue-name");
  if (queue.empty()) queue = pod.annotation("scheduling.volcano.sh/queue-name");
  if (!queue.empty() || entry.gang.empty()) return queue;
  const auto gang = gangs_.find(entry.gang);
  return gang == gangs_.end() ? "" : gang->second.queue;
}

int WorkloadBook::QueueOf(const Entry& entry) const {
  const std::string queue = QueueNameOf(entry);
  return quotas_.NumberOf(queue.empty() ? NamespaceOf(*entry.pod) : queue);
}

bool WorkloadBook::NamesNoQueue(const Entry& entry) const {
  if (options_.queues.empty()) return false;
  const std::string queue = QueueNameOf(entry);
  return !queue.empty() && !quotas_.Knows(queue);
}

void WorkloadBook::SetPod(const Key& key, const ObjectPtr& pod, double now) {
  const auto found = pods_.find(key);
  if (found != pods_.end()) {
    Entry& entry = found->second;
    const bool is_same = pod != nullptr && UidOf(*pod) == UidOf(*entry.pod) && !IsFinishedPod(*pod);
    const std::string node = is_same ? PodView(*pod).node() : "";
    // Bound by us, which this copy may not show yet.
    const bool stays_placed =
        is_same && entry.stage == Stage::kPlaced && (node == entry.node || node.empty());
    const bool stays = is_same && node.empty() && entry.stage != Stage::kPlaced &&
                       !IsTerminating(*pod) && entry.stage != Stage::kIgnored &&
                       AsksTheSame(*pod, *entry.pod);
    // One that was deleted before it was bound goes nowhere.
    if ((stays_placed && !(node.empty() && IsTerminating(*pod))) || stays) {
      entry.pod = pod;
      if (stays_placed) {
        const double left = SecondsLeft(*pod, now);
        if (left < kForever) dispatcher_.SetLeft(entry.id, left, now);
        // It may have begun to work, which saves it.
        if (partial_gangs_.count(entry.gang) != 0) touched_gangs_.insert(entry.gang);
      }
      return;
    }
    Leave(key, &entry, now);
    pods_.erase(found);
  }
  if (const auto known = finished_.find(key); known != finished_.end()) {
    --gangs_[known->second].finished;
    changed_gangs_.insert(known->second);
    finished_.erase(known);
  }
  if (pod == nullptr) return;
  if (IsFinishedPod(*pod)) {
    // Who starts again does not wait for those of its gang that are done.
    const std::string gang = GangOf(*pod);
    if (gang.empty()) return;
    finished_[key] = gang;
    ++gangs_[gang].finished;
    changed_gangs_.insert(gang);
    return;
  }
  Entry& entry = pods_[key];
  entry.pod = pod;
  Enter(key, &entry, now);
}

void WorkloadBook::Enter(const Key& key, Entry* entry, double now) {
  const Json& pod = *entry->pod;
  entry->gang = GangOf(pod);
  StatusOr<std::shared_ptr<const PodNeeds>> needs = ReadPodNeeds(pod, &names_);
  entry->problem = needs.status();
  if (needs.ok()) entry->needs = Share(*std::move(needs), pod);
  entry->node = PodView(pod).node();
  if (!entry->gang.empty()) {
    gangs_[entry->gang].pods.insert(key);
    changed_gangs_.insert(entry->gang);
    touched_gangs_.insert(entry->gang);
  }
  if (!entry->node.empty()) return EnterPlaced(key, entry, now);
  if (IsTerminating(pod)) return;
  if (options_.scheduler_names.count(PodView(pod).scheduler()) == 0) {
    entry->stage = Stage::kForeign;
    return;
  }
  entry->stage = PodView(pod).has_gates() ? Stage::kGated : Stage::kWaiting;
  if (entry->stage == Stage::kWaiting && entry->problem.ok() && entry->gang.empty())
    Submit({key}, now);
}

// It is on a node already, whoever put it there.
void WorkloadBook::EnterPlaced(const Key& key, Entry* entry, double now) {
  if (!options_.only_node.empty() && entry->node != options_.only_node) return;
  if (entry->needs == nullptr) {
    // What it asks for is not understood; it is there all the same.
    auto needs = std::make_shared<PodNeeds>();
    needs->namespace_name = NamespaceOf(*entry->pod);
    needs->amounts = Amounts({0, 0, 1});
    entry->needs = std::move(needs);
  }
  entry->stage = Stage::kPlaced;
  Place place;
  place.node = NodeNumber(entry->node);
  const auto gpus = ParseGpuIndices(PodView(*entry->pod).annotation(kGpuIndicesAnnotation));
  if (gpus.ok() && !gpus->empty()) {
    place.gpus.assign(gpus->begin(), gpus->end());
  } else if (entry->needs->gpu.count > 0 && state_.node(place.node).description != nullptr) {
    // Another scheduler put it there, which names no GPUs: some of them are taken.
    ChooseGpus(state_.node(place.node), entry->needs->gpu, &place.gpus);
  }
  Gang* const gang = entry->gang.empty() ? nullptr : &gangs_[entry->gang];
  if (gang != nullptr && gang->running >= 0) {
    entry->id = gang->running;
    dispatcher_.Join(entry->id, entry->needs, place, now);
    members_[entry->id].push_back(key);
    return;
  }
  Workload workload;
  workload.name = key.first + "/" + key.second;
  workload.queue = QueueOf(*entry);
  workload.priority = PodView(*entry->pod).priority();
  workload.submitted = CreatedAt(*entry->pod, now);
  workload.left = SecondsLeft(*entry->pod, now);
  workload.started = now;
  workload.pods = {entry->needs};
  workload.places = {place};
  entry->id = dispatcher_.Add(std::move(workload), now);
  members_[entry->id] = {key};
  if (gang != nullptr) gang->running = entry->id;
}

void WorkloadBook::Leave(const Key& key, Entry* entry, double now) {
  if (!entry->gang.empty()) {
    Gang& gang = gangs_[entry->gang];
    gang.pods.erase(key);
    changed_gangs_.insert(entry->gang);
    touched_gangs_.insert(entry->gang);
  }
  const Dispatcher::Id id = entry->id;
  if (id < 0) return;
  entry->id = -1;
  if (entry->stage != Stage::kPlaced) return Withdraw(id, now);
  std::vector<Key>& members = members_[id];
  const auto at = std::find(members.begin(), members.end(), key);
  dispatcher_.DropPod(id, static_cast<size_t>(at - members.begin()), now);
  std::swap(*at, members.back());
  members.pop_back();
  if (!members.empty()) return;
  members_.erase(id);
  if (!entry->gang.empty() && gangs_[entry->gang].running == id) gangs_[entry->gang].running = -1;
}

// A workload that waits is taken back; who else is of it is formed anew.
void WorkloadBook::Withdraw(Dispatcher::Id id, double now) {
  for (const Key& member : members_[id]) {
    const auto found = pods_.find(member);
    if (found == pods_.end()) continue;
    found->second.id = -1;
    if (!found->second.gang.empty()) changed_gangs_.insert(found->second.gang);
  }
  members_.erase(id);
  dispatcher_.Remove(id, now);
}

void WorkloadBook::Submit(const std::vector<Key>& keys, double now) {
  Workload workload;
  const Entry& first = pods_[keys.front()];
  if (NamesNoQueue(first)) return;
  workload.name = keys.front().first + "/" + keys.front().second;
  workload.queue = QueueOf(first);
  workload.submitted = kForever;
  workload.left = 0;
  for (const Key& key : keys) {
    const Entry& entry = pods_[key];
    workload.left = std::max(workload.left, SecondsLeft(*entry.pod, now));
    workload.priority = std::max(workload.priority, PodView(*entry.pod).priority());
    workload.submitted = std::min(workload.submitted, CreatedAt(*entry.pod, now));
    workload.pods.push_back(entry.needs);
  }
  const Dispatcher::Id id = dispatcher_.Add(std::move(workload), now);
  for (const Key& key : keys) pods_[key].id = id;
  members_[id] = keys;
}

void WorkloadBook::SetGang(const std::string& gang, int64_t members, const std::string& queue) {
  Gang& known = gangs_[gang];
  if (known.members == members && known.queue == queue) return;
  known.members = members;
  known.queue = queue;
  changed_gangs_.insert(gang);
  touched_gangs_.insert(gang);
}

// Those that are missing until the gang is whole wait together, all others alone.
void WorkloadBook::FormGang(const std::string& name, double now) {
  Gang& gang = gangs_[name];
  std::vector<Key> waiting;
  int64_t placed = 0;
  for (const Key& key : gang.pods) {
    Entry& entry = pods_[key];
    if (entry.stage == Stage::kPlaced) ++placed;
    if (entry.stage != Stage::kWaiting || !entry.problem.ok()) continue;
    if (entry.id >= 0) Withdraw(entry.id, now);
    waiting.push_back(key);
  }
  if (gang.pods.empty() && gang.members == 0 && gang.finished == 0) {
    gangs_.erase(name);
    return;
  }
  if (gang.members == 0 && placed == 0) return;
  const int64_t missing = std::max<int64_t>(gang.members - placed - gang.finished, 0);
  if (static_cast<int64_t>(waiting.size()) < missing) return;
  const auto together = waiting.begin() + static_cast<ptrdiff_t>(missing);
  if (missing > 0) Submit(std::vector<Key>(waiting.begin(), together), now);
  for (auto key = together; key != waiting.end(); ++key) Submit({*key}, now);
}

void WorkloadBook::Decide(double now, std::vector<Binding>* bindings,
                          std::vector<Eviction>* evictions) {
  if (std::exchange(has_new_capacity_, false)) dispatcher_.CountCapacity();
  while (!changed_gangs_.empty()) {
    const std::set<std::string> changed = std::exchange(changed_gangs_, {});
    for (const std::string& gang : changed) {
      FormGang(gang, now);
      changed_gangs_.erase(gang);  // which it marked itself
    }
  }
  Dispatcher::Outcome outcome;
  dispatcher_.Decide(now, &outcome);
  for (const Dispatcher::Id id : outcome.started) {
    const Workload& workload = dispatcher_.workload(id);
    const std::vector<Key> members = members_[id];
    for (size_t i = 0; i < members.size(); ++i) {
      Entry& entry = pods_[members[i]];
      const Place& place = workload.places[i];
      entry.stage = Stage::kPlaced;
      entry.node = state_.node(place.node).description->name;
      bindings->push_back({entry.pod, entry.node, absl::StrJoin(place.gpus, ",")});
      if (entry.gang.empty()) continue;
      touched_gangs_.insert(entry.gang);
      if (gangs_[entry.gang].running < 0) gangs_[entry.gang].running = id;
    }
  }
  for (const Dispatcher::Id id : outcome.displaced) {
    for (const Key& key : members_[id])
      evictions->push_back({pods_[key].pod, "Preempted to make room for pods that go before it"});
  }
  EvictPartialGangs(now, evictions);
}

// Some of it have a place, not as many as start together, and none of them has begun to work.
bool WorkloadBook::IsPartial(const Gang& gang) const {
  if (gang.finished > 0) return false;
  int64_t placed = 0;
  for (const Key& key : gang.pods) {
    const Entry& entry = pods_.at(key);
    if (entry.stage != Stage::kPlaced) continue;
    if (++placed >= gang.members) return false;
    if (PodView(*entry.pod).phase() != "Pending") return false;
  }
  return placed > 0;
}

// What a scheduler that was killed in between has left of a gang: those that have a place give it
// back when the others find none. Only gangs that something has happened to are looked at.
void WorkloadBook::EvictPartialGangs(double now, std::vector<Eviction>* evictions) {
  for (const std::string& name : std::exchange(touched_gangs_, {})) {
    const auto gang = gangs_.find(name);
    if (gang == gangs_.end() || !IsPartial(gang->second)) {
      partial_gangs_.erase(name);
    } else {
      partial_gangs_.try_emplace(name, now);
    }
  }
  for (auto& [name, since] : partial_gangs_) {
    if (now - since < kPartialPatience) continue;
    since = now;  // and again, for what does not go
    for (const Key& key : gangs_[name].pods) {
      const Entry& entry = pods_[key];
      if (entry.stage == Stage::kPlaced && !IsTerminating(*entry.pod))
        evictions->push_back({entry.pod, "Its gang is not whole, and finds no room to be"});
    }
  }
}

bool WorkloadBook::Awaits(const Binding& binding) const {
  const auto found = pods_.find({NamespaceOf(*binding.pod), NameOf(*binding.pod)});
  return found != pods_.end() && UidOf(*found->second.pod) == UidOf(*binding.pod) &&
         found->second.stage == Stage::kPlaced && found->second.node == binding.node &&
         !PodView(*found->second.pod).is_bound();
}

void WorkloadBook::TakeBack(const Binding& binding, double now) {
  const Key key(NamespaceOf(*binding.pod), NameOf(*binding.pod));
  const auto found = pods_.find(key);
  if (found == pods_.end() || UidOf(*found->second.pod) != UidOf(*binding.pod)) return;
  Entry& entry = found->second;
  // A watch was faster.
  if (entry.stage != Stage::kPlaced || PodView(*entry.pod).is_bound()) return;
  Leave(key, &entry, now);
  entry.stage = Stage::kIgnored;
  Enter(key, &entry, now);
}

void WorkloadBook::TakeBack(const Eviction& eviction) {
  const auto found = pods_.find({NamespaceOf(*eviction.pod), NameOf(*eviction.pod)});
  if (found != pods_.end() && found->second.stage == Stage::kPlaced)
    dispatcher_.Keep(found->second.id);
}

std::vector<ObjectPtr> WorkloadBook::Foreign() const {
  std::vector<ObjectPtr> foreign;
  for (const auto& [key, entry] : pods_) {
    if (entry.stage == Stage::kForeign) foreign.push_back(entry.pod);
  }
  return foreign;
}

}  // namespace weft::platform
