// SPDX-License-Identifier: Apache-2.0
// One operator process of a simulation: a real controller over a network that is not to be trusted.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "platform/jobs/tfjob_controller.h"
#include "platform/reconcile/leader_election.h"
#include "platform/simulation/fiber.h"
#include "platform/simulation/planted.h"
#include "platform/simulation/world.h"

namespace weft::platform::simulation {

// The cluster's clock, at another rate and set wrongly.
class SkewedClock : public Clock {
 public:
  SkewedClock(const Clock* base, double rate, absl::Duration offset)
      : base_(base), rate_(rate), offset_(offset) {}
  absl::Time Now() const override { return base_->Now() + offset_; }
  absl::Duration Monotonic() const override { return base_->Monotonic() * rate_; }
  // When the cluster's clock shows what this one will.
  absl::Duration ToBase(absl::Duration monotonic) const { return monotonic / rate_; }

 private:
  const Clock* const base_;
  const double rate_;
  const absl::Duration offset_;
};

// Its fibers: of each controller one works and one keeps the informers; one elects. They change
// places at each call to the store, where a fault may strike. Not thread-safe; borrows the world.
class Process {
 public:
  struct Options {
    int id = 0;
    Bug bug = Bug::kNone;
    absl::Duration relist = absl::InfiniteDuration();
    bool may_lose_silently = false;  // events of watches
  };
  Process(World* world, const Options& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // How many things could go on now; Run does the n-th of them.
  size_t CountReady();
  void Run(size_t n);
  // When something could go on next, on the cluster's clock. Elections never rest and do not count
  // for `is_quiet`.
  absl::Duration NextWake(bool is_quiet);
  // It leads, knows all there is, and all its fibers rest.
  bool IsQuiet();

  void Kill();
  bool is_dead() const { return is_dead_; }
  void PauseUntil(absl::Duration when) { paused_until_ = when; }
  void CutOffUntil(absl::Duration when) { cut_off_until_ = when; }
  void BreakWatches(const Status& why);
  bool IsLeading() const { return !controllers_.empty(); }

 private:
  friend class NetworkStore;
  friend class NetworkWatch;
  struct Strand {
    std::unique_ptr<Fiber> fiber;
    absl::Duration wake = absl::ZeroDuration();  // while it is in a call or sleeps
    bool is_idle = true;                         // between two rounds
  };

  void Work(size_t controller);
  void Keep(size_t controller);
  void Elect();
  TfJobController* Controller(size_t n) {
    return n < controllers_.size() ? controllers_[n].get() : nullptr;
  }
  // In a fiber: lets others go on for so long; returns at once when the process is dead.
  void Pause(absl::Duration length);
  void Idle(absl::Duration length);
  bool IsReady(size_t strand);
  void Resume(size_t strand);
  void FollowLeadership();
  void StartControllers();
  void Deliver(class NetworkWatch* watch);
  bool MayDeliver(const class NetworkWatch& watch);

  World* const world_;
  const Options options_;
  const SkewedClock clock_;
  PlantedState planted_;
  std::unique_ptr<ObjectStore> network_;
  std::unique_ptr<ObjectStore> election_store_;
  std::unique_ptr<LeaderElector> elector_;
  std::unique_ptr<ObjectStore> below_fence_;
  std::unique_ptr<FencedStore> fence_;
  std::unique_ptr<ObjectStore> controller_store_;
  std::vector<class NetworkWatch*> watches_;
  std::set<std::string> listed_;  // of what the controllers have a list, whole
  bool is_dead_ = false;
  absl::Duration paused_until_;
  absl::Duration cut_off_until_;
  int64_t term_ = -1;
  size_t running_ = 0;
  // Of the n-th controller 2n works and 2n + 1 keeps; the last one elects.
  std::vector<Strand> strands_;
  std::vector<std::unique_ptr<TfJobController>> controllers_;  // last: they use all of the above
};

}  // namespace weft::platform::simulation
