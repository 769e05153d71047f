// SPDX-License-Identifier: Apache-2.0
#include "platform/simulation/process.h"

#include <algorithm>
#include <utility>

#include "platform/simulation/network.h"
#include "platform/store/api_error.h"

namespace weft::platform::simulation {
namespace {

constexpr absl::Duration kForEver = absl::InfiniteDuration();
constexpr absl::Duration kLongestStall = absl::Minutes(2);

// Rates within 2 % of each other, wall clocks within 30 s.
SkewedClock MakeClock(World* world) {
  if (!world->elects) return SkewedClock(world->cluster.clock(), 1, absl::ZeroDuration());
  const double rate = 0.99 + 0.02 * static_cast<double>(world->random.Below(1000)) / 1000;
  return SkewedClock(world->cluster.clock(), rate,
                     absl::Seconds(static_cast<int64_t>(world->random.Below(60)) - 30));
}

}  // namespace

Process::Process(World* world, const Options& options)
    : world_(world),
      options_(options),
      clock_(MakeClock(world)),
      network_(std::make_unique<NetworkStore>(this)) {
  planted_.bug = options.bug;
  planted_.clock = &clock_;
  if (world_->elects) {
    election_store_ = PlantInElection(&planted_, network_.get());
    LeaderElector::Options election;
    election.store = election_store_.get();
    election.clock = &clock_;
    election.namespace_name = "weft-system";
    election.name = "weft-operator";
    election.identity =
        absl::StrCat("process-", options.bug == Bug::kSharedIdentity ? 0 : options.id);
    elector_ = std::make_unique<LeaderElector>(election);
    below_fence_ = PlantBelowFence(&planted_, network_.get());
    fence_ = std::make_unique<FencedStore>(below_fence_.get(), elector_.get());
  }
  ObjectStore* const below = fence_ == nullptr || options.bug == Bug::kNoFence
                                 ? network_.get()
                                 : static_cast<ObjectStore*>(fence_.get());
  controller_store_ = PlantInController(&planted_, below);
  strands_[kWorks].fiber = std::make_unique<Fiber>([this] { Work(); });
  strands_[kKeeps].fiber = std::make_unique<Fiber>([this] { Keep(); });
  strands_[kElects].fiber = std::make_unique<Fiber>([this] { Elect(); });
  if (!world_->elects) StartController();
}

Process::~Process() { Kill(); }

void Process::StartController() {
  TfJobController::Options options;
  options.store = controller_store_.get();
  options.clock = &clock_;
  options.relist = options_.relist;
  options.plan = PlantInPlan(&planted_);
  controller_ = std::make_unique<TfJobController>(options);
  first_lists_.clear();
  if (elector_ != nullptr) term_ = elector_->transitions();
}

void Process::Kill() {
  is_dead_ = true;
  for (int strand = 0; strand < kStrands; ++strand) {
    while (!strands_[strand].fiber->finished()) Resume(strand);
  }
  controller_.reset();
}

void Process::Pause(absl::Duration length) {
  if (is_dead_) return;
  strands_[running_].wake = world_->now() + length;
  Fiber::Yield();
}

void Process::Idle(absl::Duration length) {
  strands_[running_].is_idle = true;
  Pause(length);
  if (!is_dead_) strands_[running_].is_idle = false;
}

void Process::Work() {
  while (!is_dead_) {
    Idle(absl::ZeroDuration());
    if (!is_dead_ && controller_ != nullptr) controller_->Step();
  }
}

void Process::Keep() {
  while (!is_dead_) {
    Idle(absl::ZeroDuration());
    if (!is_dead_ && controller_ != nullptr) controller_->Maintain();
  }
}

void Process::Elect() {
  while (!is_dead_ && elector_ != nullptr) {
    elector_->Step();
    Idle(absl::Seconds(2));
  }
}

// The controller lives while the process leads.
void Process::FollowLeadership() {
  if (elector_ == nullptr) return;
  const bool leads = elector_->IsLeader();
  if (controller_ == nullptr && leads) return StartController();
  if (controller_ == nullptr || (leads && elector_->transitions() == term_)) return;
  if (strands_[kWorks].is_idle && strands_[kKeeps].is_idle) controller_.reset();
}

bool Process::IsReady(int strand) {
  Strand& at = strands_[strand];
  if (at.fiber->finished() || at.wake > world_->now()) return false;
  if (!at.is_idle || strand == kElects) return true;
  if (controller_ == nullptr) return false;
  if (strand == kKeeps) return controller_->NextMaintenance() <= clock_.Monotonic();
  return controller_->HasSynced() &&
         (controller_->HasReady() || controller_->NextDue() <= clock_.Monotonic());
}

bool Process::MayDeliver(const NetworkWatch& watch) {
  return !watch.queue.empty() && watch.stalled_until <= world_->now();
}

size_t Process::CountReady() {
  if (is_dead_ || paused_until_ > world_->now()) return 0;
  FollowLeadership();
  size_t count = 0;
  for (int strand = 0; strand < kStrands; ++strand) count += IsReady(strand) ? 1 : 0;
  for (const NetworkWatch* watch : watches_) count += MayDeliver(*watch) ? 1 : 0;
  return count;
}

void Process::Run(size_t n) {
  for (int strand = 0; strand < kStrands; ++strand) {
    if (IsReady(strand) && n-- == 0) return Resume(strand);
  }
  for (NetworkWatch* watch : watches_) {
    if (MayDeliver(*watch) && n-- == 0) return Deliver(watch);
  }
}

void Process::Resume(int strand) {
  running_ = strand;
  strands_[strand].fiber->Resume();
  running_ = -1;
}

void Process::Deliver(NetworkWatch* watch) {
  std::deque<WatchEvent>& queue = watch->queue;
  if (world_->Fails(24)) {
    switch (world_->random.Below(options_.may_lose_silently && watch->is_listed ? 6 : 5)) {
      case 0:  // again
        queue.push_front(queue.front());
        break;
      case 1:
        if (queue.size() > 1) std::swap(queue[0], queue[1]);
        break;
      case 2:
        watch->stalled_until = world_->now() + world_->random.UpTo(kLongestStall);
        return;
      case 3:
        return BreakWatches(Unavailable("the connection broke"));
      case 4:
        return BreakWatches(RevisionExpired("too old resource version"));
      default:
        world_->Note("process-", options_.id, " loses an event");
        queue.pop_front();
        return;
    }
  }
  const WatchEvent event = queue.front();
  queue.pop_front();
  watch->is_listed = watch->is_listed || event.kind == WatchEvent::Kind::kBookmark;
  watch->Tell(event);
}

// With what was on its way.
void Process::BreakWatches(const Status& why) {
  world_->Note("the watches of process-", options_.id, " break: ", why.message());
  for (NetworkWatch* watch : watches_) {
    if (watch->is_broken) continue;
    watch->queue.clear();
    watch->is_broken = true;
    watch->source.reset();
    watch->queue.push_back(WatchEvent{WatchEvent::Kind::kError, nullptr, why});
  }
}

absl::Duration Process::NextWake(bool is_quiet) {
  if (is_dead_) return kForEver;
  const absl::Duration now = world_->now();
  absl::Duration next = paused_until_ > now ? paused_until_ : kForEver;
  for (int strand = 0; strand < kStrands; ++strand) {
    const Strand& at = strands_[strand];
    if (at.fiber->finished() || (is_quiet && strand == kElects)) continue;
    if (!at.is_idle || strand == kElects) {
      next = std::min(next, at.wake);
    } else if (controller_ != nullptr && strand == kKeeps) {
      const absl::Duration due = clock_.ToBase(controller_->NextMaintenance());
      if (!is_quiet || due < now + options_.relist / 2) next = std::min(next, due);
    } else if (controller_ != nullptr && controller_->HasSynced()) {
      next = std::min(next, controller_->HasReady() ? now : clock_.ToBase(controller_->NextDue()));
    }
  }
  for (const NetworkWatch* watch : watches_) {
    if (!watch->queue.empty()) next = std::min(next, watch->stalled_until);
  }
  // A nanosecond for what the change between clocks rounds off.
  return std::max(next, std::max(paused_until_, now)) + absl::Nanoseconds(100);
}

bool Process::IsQuiet() {
  if (is_dead_ || paused_until_ > world_->now() || controller_ == nullptr) return false;
  if (!controller_->HasSynced() || controller_->HasReady()) return false;
  for (const NetworkWatch* watch : watches_) {
    if (!watch->queue.empty()) return false;
  }
  return strands_[kWorks].is_idle && strands_[kKeeps].is_idle && !IsReady(kWorks) &&
         !IsReady(kKeeps);
}

}  // namespace weft::platform::simulation
