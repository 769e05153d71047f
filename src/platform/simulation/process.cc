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
// Within that a broken watch starts anew; a list of a watch that is whole comes when it comes.
constexpr absl::Duration kSoon = absl::Minutes(1);

bool EndsList(const WatchEvent& event) { return event.kind == WatchEvent::Kind::kBookmark; }

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
  const size_t controllers = world_->cluster.setting().has_compact ? 2 : 1;
  strands_.resize(2 * controllers + 1);
  for (size_t n = 0; n < controllers; ++n) {
    strands_[2 * n].fiber = std::make_unique<Fiber>([this, n] { Work(n); });
    strands_[2 * n + 1].fiber = std::make_unique<Fiber>([this, n] { Keep(n); });
  }
  strands_.back().fiber = std::make_unique<Fiber>([this] { Elect(); });
  if (!world_->elects) StartControllers();
}

Process::~Process() { Kill(); }

void Process::StartControllers() {
  TfJobController::Options options;
  options.store = controller_store_.get();
  options.clock = &clock_;
  options.relist = options_.relist;
  options.packs_copies = false;
  options.plan = PlantInPlan(&planted_);
  options.gang_scheduler = world_->cluster.setting().gang_scheduler;
  controllers_.push_back(std::make_unique<TfJobController>(options));
  if (world_->cluster.setting().has_compact) {
    options.type = &Tensorflows();
    controllers_.push_back(std::make_unique<TfJobController>(options));
  }
  listed_.clear();
  if (elector_ != nullptr) term_ = elector_->transitions();
}

void Process::Kill() {
  is_dead_ = true;
  for (size_t strand = 0; strand < strands_.size(); ++strand) {
    while (!strands_[strand].fiber->finished()) Resume(strand);
  }
  controllers_.clear();
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

void Process::Work(size_t controller) {
  while (!is_dead_) {
    Idle(absl::ZeroDuration());
    if (!is_dead_ && Controller(controller) != nullptr) Controller(controller)->Step();
  }
}

void Process::Keep(size_t controller) {
  while (!is_dead_) {
    Idle(absl::ZeroDuration());
    if (!is_dead_ && Controller(controller) != nullptr) Controller(controller)->Maintain();
  }
}

void Process::Elect() {
  while (!is_dead_ && elector_ != nullptr) {
    elector_->Step();
    Idle(absl::Seconds(2));
  }
}

// The controllers live while the process leads.
void Process::FollowLeadership() {
  if (elector_ == nullptr) return;
  const bool leads = elector_->IsLeader();
  if (controllers_.empty() && leads) return StartControllers();
  if (controllers_.empty() || (leads && elector_->transitions() == term_)) return;
  const bool rests = std::all_of(strands_.begin(), strands_.end() - 1,
                                 [](const Strand& strand) { return strand.is_idle; });
  if (rests) controllers_.clear();
}

bool Process::IsReady(size_t strand) {
  Strand& at = strands_[strand];
  if (at.fiber->finished() || at.wake > world_->now()) return false;
  if (!at.is_idle || strand + 1 == strands_.size()) return true;
  const TfJobController* const controller = Controller(strand / 2);
  if (controller == nullptr) return false;
  if (strand % 2 == 1) return controller->NextMaintenance() <= clock_.Monotonic();
  return controller->HasSynced() &&
         (controller->HasReady() || controller->NextDue() <= clock_.Monotonic());
}

bool Process::MayDeliver(const NetworkWatch& watch) {
  return !watch.queue.empty() && watch.stalled_until <= world_->now();
}

size_t Process::CountReady() {
  if (is_dead_ || paused_until_ > world_->now()) return 0;
  FollowLeadership();
  size_t count = 0;
  for (size_t strand = 0; strand < strands_.size(); ++strand) count += IsReady(strand) ? 1 : 0;
  for (const NetworkWatch* watch : watches_) count += MayDeliver(*watch) ? 1 : 0;
  return count;
}

void Process::Run(size_t n) {
  for (size_t strand = 0; strand < strands_.size(); ++strand) {
    if (IsReady(strand) && n-- == 0) return Resume(strand);
  }
  for (NetworkWatch* watch : watches_) {
    if (MayDeliver(*watch) && n-- == 0) return Deliver(watch);
  }
}

void Process::Resume(size_t strand) {
  running_ = strand;
  strands_[strand].fiber->Resume();
}

void Process::Deliver(NetworkWatch* watch) {
  std::deque<WatchEvent>& queue = watch->queue;
  if (world_->Fails(24)) {
    switch (world_->random.Below(options_.may_lose_silently && watch->is_listed ? 6 : 5)) {
      case 0:  // again
        queue.push_front(queue.front());
        break;
      case 1:
        // A list comes whole: nothing of it after its end.
        if (queue.size() > 1 && (watch->is_listed || !EndsList(queue[1])))
          std::swap(queue[0], queue[1]);
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
  if (EndsList(event)) {
    watch->is_listed = true;
    listed_.insert(watch->what);
  }
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
  for (size_t strand = 0; strand < strands_.size(); ++strand) {
    const Strand& at = strands_[strand];
    const bool elects = strand + 1 == strands_.size();
    const TfJobController* const controller = Controller(strand / 2);
    if (at.fiber->finished() || (is_quiet && elects)) continue;
    if (!at.is_idle || elects) {
      next = std::min(next, at.wake);
    } else if (controller != nullptr && strand % 2 == 1) {
      const absl::Duration due = clock_.ToBase(controller->NextMaintenance());
      if (!is_quiet || due < now + kSoon) next = std::min(next, due);
    } else if (controller != nullptr && controller->HasSynced()) {
      next = std::min(next, controller->HasReady() ? now : clock_.ToBase(controller->NextDue()));
    }
  }
  for (const NetworkWatch* watch : watches_) {
    if (!watch->queue.empty()) next = std::min(next, watch->stalled_until);
  }
  // A nanosecond for what the change between clocks rounds off.
  return std::max(next, std::max(paused_until_, now)) + absl::Nanoseconds(100);
}

bool Process::IsQuiet() {
  if (is_dead_ || paused_until_ > world_->now() || controllers_.empty()) return false;
  for (const auto& controller : controllers_) {
    if (!controller->HasSynced() || controller->HasReady()) return false;
  }
  for (const NetworkWatch* watch : watches_) {
    if (!watch->queue.empty()) return false;
  }
  for (size_t strand = 0; strand + 1 < strands_.size(); ++strand) {
    if (!strands_[strand].is_idle || IsReady(strand)) return false;
  }
  return true;
}

}  // namespace weft::platform::simulation
