// SPDX-License-Identifier: Apache-2.0
#include "platform/scheduling/pod_scheduler.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

#include "base/log.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/object/pod_annotations.h"
#include "platform/object/pod_view.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kLongestWait = absl::Milliseconds(100);
// How often what waits is told anew: reasons change with each pod that comes or goes.
constexpr absl::Duration kTellPeriod = absl::Seconds(1);
// A reason that only changed its figures can wait this long, and no more calls than these are made
// at once: thousands of pods may wait.
constexpr absl::Duration kRetellPeriod = absl::Seconds(20);
constexpr int kMostTold = 100;
constexpr absl::Duration kGroupsRetry = absl::Seconds(30);
constexpr absl::Duration kLookPeriod = absl::Seconds(5);
constexpr absl::Duration kRetryPeriod = absl::Seconds(1);
constexpr int kMostTries = 4;

// It may have happened all the same.
bool IsUnsure(const Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsInternal(status) || absl::IsCancelled(status) || absl::IsUnknown(status);
}

bool IsGroupOurs(const Json& group) { return IntField(group, {"spec", "minMember"}) > 0; }

}  // namespace

StatusOr<std::unique_ptr<PodScheduler>> PodScheduler::Create(Options options) {
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Order> order, MakeOrder(options.order));
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<PlacementPolicy> placement,
                        MakePlacement(options.placement));
  return std::unique_ptr<PodScheduler>(
      new PodScheduler(std::move(options), std::move(order), std::move(placement)));
}

PodScheduler::PodScheduler(Options options, std::unique_ptr<Order> order,
                           std::unique_ptr<PlacementPolicy> placement)
    : options_(std::move(options)),
      store_(options_.store),
      order_(std::move(order)),
      placement_(std::move(placement)),
      events_(store_, options_.clock, "weft-scheduler"),
      book_({.scheduler_names = options_.scheduler_names,
             .only_node = options_.only_node,
             .order = order_.get(),
             .placement = placement_.get(),
             .queues = options_.queues}),
      nodes_(store_, Nodes(), {}, options_.clock),
      pods_(store_, Pods(), {}, options_.clock),
      groups_{PodGroups(), {store_, PodGroups(), {}, options_.clock}},
      volcano_groups_{VolcanoPodGroups(), {store_, VolcanoPodGroups(), {}, options_.clock}} {
  Watch(&nodes_, &changed_nodes_);
  Watch(&pods_, &changed_pods_);
  Watch(&groups_.informer, &changed_groups_);
  Watch(&volcano_groups_.informer, &changed_groups_);
  if (options_.parallel_calls > 0)
    pool_ = std::make_unique<ThreadPool>("bind", options_.parallel_calls);
}

PodScheduler::~PodScheduler() {
  stopping_.store(true);
  {
    absl::MutexLock lock(&mutex_);
    has_news_ = true;
  }
  thread_.reset();
  pool_.reset();
}

void PodScheduler::Start() {
  events_.Start();
  thread_ = std::make_unique<Thread>("scheduler", [this] { Run(); });
}

bool PodScheduler::HasSynced() const { return nodes_.HasSynced() && pods_.HasSynced(); }

double PodScheduler::Now() const {
  return absl::ToDoubleSeconds(options_.clock->Now() - absl::UnixEpoch());
}

void PodScheduler::Watch(Informer* informer, std::set<Key>* changed) {
  informer->AddHandler([this, changed](const ObjectPtr& previous, const ObjectPtr& object) {
    const Json& of = object == nullptr ? *previous : *object;
    absl::MutexLock lock(&mutex_);
    changed->emplace(NamespaceOf(of), NameOf(of));
    has_news_ = true;
  });
}

void PodScheduler::Run() {
  while (!stopping_.load()) {
    Step();
    absl::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&has_news_), kLongestWait);
    has_news_ = false;
  }
}

bool PodScheduler::Step() {
  for (Informer* informer : {&nodes_, &pods_}) informer->Maintain();
  MaintainGroups();
  if (!HasSynced()) return false;
  const double now = Now();
  TakeResults(now);
  TryAgain();
  is_changed_ = TakeNews(now) || is_changed_;
  // Time alone changes what waits, too.
  if (book_.waiting_count() > 0 && options_.clock->Monotonic() >= next_look_) {
    next_look_ = options_.clock->Monotonic() + kLookPeriod;
    is_changed_ = true;
  }
  if (!std::exchange(is_changed_, false)) {
    if (has_untold_ && options_.clock->Monotonic() >= next_tell_) TellPending();
    return false;
  }
  has_untold_ = true;
  std::vector<WorkloadBook::Binding> bindings;
  std::vector<WorkloadBook::Eviction> evictions;
  book_.Decide(now, &bindings, &evictions);
  for (const WorkloadBook::Eviction& eviction : evictions) Call(eviction);
  for (const WorkloadBook::Binding& binding : bindings) Call(binding);
  if (options_.clock->Monotonic() >= next_tell_) TellPending();
  return true;
}

// Once they are known to be there: a watch of what a cluster does not have fails without an end.
void PodScheduler::MaintainGroups() {
  for (Groups* groups : {&groups_, &volcano_groups_}) {
    const absl::Duration now = options_.clock->Monotonic();
    if (!groups->is_there && now >= groups->next_try) {
      groups->next_try = now + kGroupsRetry;
      groups->is_there = store_->List(groups->type, {.limit = 1}).ok();
    }
    if (groups->is_there) groups->informer.Maintain();
  }
}

bool PodScheduler::TakeNews(double now) {
  std::set<Key> nodes;
  std::set<Key> pods;
  std::set<Key> groups;
  {
    absl::MutexLock lock(&mutex_);
    nodes.swap(changed_nodes_);
    pods.swap(changed_pods_);
    groups.swap(changed_groups_);
  }
  for (const auto& [none, name] : nodes) {
    const ObjectPtr node = nodes_.Get(none, name);
    book_.SetNode(name, node.get());
  }
  for (const auto& [space, name] : groups) {
    ObjectPtr group = groups_.informer.Get(space, name);
    if (group == nullptr) group = volcano_groups_.informer.Get(space, name);
    const bool is_known = group != nullptr && IsGroupOurs(*group);
    book_.SetGang(absl::StrCat(space, "/", name),
                  is_known ? IntField(*group, {"spec", "minMember"}) : 0,
                  is_known ? StringField(*group, {"spec", "queue"}) : "");
  }
  for (const Key& key : pods) book_.SetPod(key, pods_.Get(key.first, key.second), now);
  return !nodes.empty() || !pods.empty() || !groups.empty();
}

void PodScheduler::TakeResults(double now) {
  std::vector<Result> results;
  {
    absl::MutexLock lock(&mutex_);
    results.swap(results_);
  }
  for (const Result& result : results) {
    if (result.status.ok()) continue;
    is_changed_ = true;
    const bool is_binding = result.binding.pod != nullptr;
    const Json& pod = is_binding ? *result.binding.pod : *result.eviction.pod;
    // Whoever is faster will be seen.
    if (!IsConflict(result.status) && !IsObjectNotFound(result.status)) {
      WEFT_LOG_EVERY(WARNING, absl::Seconds(10))
          << "Pod " << NamespaceOf(pod) << "/" << NameOf(pod)
          << (is_binding ? " is not bound: " : " is not evicted: ") << result.status.message();
    }
    // Its place stays taken: nobody else may get what it maybe has.
    if (is_binding && IsUnsure(result.status)) {
      unsure_.push_back(result.binding);
      next_try_ = options_.clock->Monotonic() + kRetryPeriod;
      continue;
    }
    is_binding ? book_.TakeBack(result.binding, now) : book_.TakeBack(result.eviction);
  }
}

void PodScheduler::TryAgain() {
  if (unsure_.empty() || options_.clock->Monotonic() < next_try_) return;
  for (const WorkloadBook::Binding& binding : std::exchange(unsure_, {})) {
    if (book_.Awaits(binding)) Call(binding);
  }
}

void PodScheduler::Finish(Result result) {
  absl::MutexLock lock(&mutex_);
  results_.push_back(std::move(result));
  has_news_ = true;
}

void PodScheduler::Call(const WorkloadBook::Binding& binding) {
  const auto work = [this, binding] {
    Finish({stopping_.load() ? absl::CancelledError("stopping") : Bind(binding), binding, {}});
  };
  pool_ == nullptr ? work() : pool_->Schedule(work);
}

void PodScheduler::Call(const WorkloadBook::Eviction& eviction) {
  const auto work = [this, eviction] {
    const Json& pod = *eviction.pod;
    Status status = Evict(eviction);
    if (status.ok()) events_.Record(pod, "Normal", "Preempted", eviction.reason);
    if (IsObjectNotFound(status)) status = absl::OkStatus();
    Finish({status, {}, eviction});
  };
  pool_ == nullptr ? work() : pool_->Schedule(work);
}

// As it was seen, and no other: one that has finished meanwhile keeps what it has done.
Status PodScheduler::Evict(const WorkloadBook::Eviction& eviction) {
  ObjectPtr pod = eviction.pod;
  const ObjectName name{NamespaceOf(*pod), NameOf(*pod)};
  for (int tries = 1;; ++tries) {
    DeleteOptions options;
    options.uid = UidOf(*pod);
    options.revision = RevisionOf(*pod);
    const Status status = store_->Delete(Pods(), name, options).status();
    if (!IsConflict(status) || tries >= kMostTries) return status;
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr fresh, store_->Get(Pods(), name));
    if (UidOf(*fresh) != UidOf(*pod) || IsTerminating(*fresh) || IsFinishedPod(*fresh))
      return status;
    pod = fresh;
  }
}

Status PodScheduler::Bind(const WorkloadBook::Binding& binding) {
  ObjectPtr pod = binding.pod;
  const ObjectName name{NamespaceOf(*pod), NameOf(*pod)};
  for (int tries = 1;; ++tries) {
    Json bound = *pod;
    SetField(&bound, {"spec", "nodeName"}, binding.node);
    if (!binding.gpus.empty())
      SetField(&bound, {"metadata", "annotations", kGpuIndicesAnnotation}, binding.gpus);
    WriteOptions options;
    options.subresource = "binding";
    const Status status = store_->Update(Pods(), std::move(bound), options).status();
    if (status.ok()) {
      events_.Record(*pod, "Normal", "Scheduled",
                     absl::StrCat("Successfully assigned ", name.namespace_name, "/", name.name,
                                  " to ", binding.node));
      return status;
    }
    if (!IsConflict(status) || tries >= kMostTries) return status;
    // Somebody wrote to it meanwhile, maybe we ourselves.
    WEFT_ASSIGN_OR_RETURN(const ObjectPtr fresh, store_->Get(Pods(), name));
    if (UidOf(*fresh) != UidOf(*pod) || IsTerminating(*fresh)) return status;
    const std::string node = PodView(*fresh).node();
    if (!node.empty()) return node == binding.node ? absl::OkStatus() : status;
    pod = fresh;
  }
}

void PodScheduler::TellPending() {
  next_tell_ = options_.clock->Monotonic() + kTellPeriod;
  has_untold_ = false;
  const absl::Duration now = options_.clock->Monotonic();
  std::map<Key, Told> still;
  int calls = 0;
  for (const WorkloadBook::Pending& pending : book_.ExplainPending(Now())) {
    const Key key(NamespaceOf(*pending.pod), NameOf(*pending.pod));
    const auto told = told_.find(key);
    const bool is_known = told != told_.end() && told->second.uid == UidOf(*pending.pod);
    if (is_known && told->second.why == pending.why) {
      still[key] = told->second;
    } else if ((is_known && now < told->second.at + kRetellPeriod) || calls >= kMostTold) {
      if (is_known) still[key] = told->second;
      has_untold_ = true;
    } else {
      Tell(pending);
      ++calls;
      still[key] = {UidOf(*pending.pod), pending.why, now};
    }
  }
  if (options_.tells_foreign) {
    for (const ObjectPtr& pod : book_.Foreign()) {
      const Key key(NamespaceOf(*pod), NameOf(*pod));
      const auto told = told_.find(key);
      if (told == told_.end() || told->second.uid != UidOf(*pod)) {
        events_.Record(*pod, "Warning", "FailedScheduling",
                       absl::StrCat("No scheduler '", PodView(*pod).scheduler(),
                                    "' runs here: leave spec.schedulerName out, or start weft up "
                                    "with --scheduler_name for it"));
      }
      still[key] = {UidOf(*pod), "", now};
    }
  }
  told_ = std::move(still);
}

// The condition that a cluster's scheduler writes, and its event.
void PodScheduler::Tell(const WorkloadBook::Pending& pending) {
  const Json& pod = *pending.pod;
  const std::string reason = pending.is_gated ? "SchedulingGated" : "Unschedulable";
  Json condition;
  condition.Set("type", "PodScheduled");
  condition.Set("status", "False");
  condition.Set("reason", reason);
  condition.Set("message", pending.why);
  condition.Set("lastTransitionTime", FormatObjectTime(options_.clock->Now()));
  Json patch;
  SetField(&patch, {"metadata", "uid"}, UidOf(pod));
  SetField(&patch, {"status", "conditions"}, Json(Json::Array{std::move(condition)}));
  WriteOptions options;
  options.subresource = "status";
  const Status status =
      store_->Patch(Pods(), {NamespaceOf(pod), NameOf(pod)}, PatchKind::kStrategic, patch, options)
          .status();
  if (!status.ok() && !IsConflict(status) && !IsObjectNotFound(status)) {
    WEFT_LOG_EVERY(WARNING, absl::Seconds(10))
        << "What pod " << NameOf(pod) << " waits for is not written: " << status.message();
  }
  if (!pending.is_gated) events_.Record(pod, "Warning", "FailedScheduling", pending.why);
}

}  // namespace weft::platform
