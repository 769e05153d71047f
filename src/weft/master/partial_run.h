// SPDX-License-Identifier: Apache-2.0
// A step whose feeds and fetches come one by one (PartialRunSetup and the RunSteps after it).
#pragma once

#include <list>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "weft/master/step_runner.h"

namespace weft::master {

// Thread-safe. All of the step runs at once: what lacks a feed waits in the step's rendezvous, and
// what was fetched waits here until it is asked for. Shared by what tells it of the step's life.
class PartialRun : public std::enable_shared_from_this<PartialRun> {
 public:
  using Done = absl::AnyInvocable<void(StatusOr<StepResult>)>;

  // Borrows `runner`, which outlives the step.
  PartialRun(const std::vector<std::string>& feeds, const std::vector<std::string>& fetches,
             StepRunner* runner);

  // Calls `ready` once, when calls can come, or with why they cannot.
  void WhenReady(absl::AnyInvocable<void(const Status&)> ready);
  void Begin(PartialStart start);
  void End(StatusOr<StepResult> result);

  // `done` runs once, with the values of `fetches` in order. InvalidArgument for feeds and fetches
  // that were not set up, that came before, and for fetches that need feeds which have not come.
  // With the last feed and fetch it waits for the end of the step.
  void Call(std::vector<step::Feed> feeds, std::vector<std::string> fetches, Done done);
  // Nothing is left to ask for.
  bool is_over() const;
  // The step runs, and nobody has called.
  bool waits_for_client() const;

 private:
  struct Fetch {
    bool is_asked = false;
    bool has_value = false;
    Tensor value;
  };
  struct Waiting {
    std::vector<std::string> fetches;
    bool is_last = false;
    Done done;
  };
  struct Finished {
    Done done;
    StatusOr<StepResult> result;
  };
  Status Admit(const std::vector<step::Feed>& feeds, const std::vector<std::string>& fetches)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Arrived(const std::string& fetch, StatusOr<Tensor> value, bool is_dead);
  // Takes out the calls that are over, to be told without the lock.
  std::list<Finished> TakeFinished() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void Tell(std::list<Finished> finished);

  StepRunner* const runner_;
  const std::vector<std::string> feed_order_;
  mutable absl::Mutex mutex_;
  std::map<std::string, bool> feeds_ ABSL_GUARDED_BY(mutex_);  // whether it came
  std::map<std::string, Fetch> fetches_ ABSL_GUARDED_BY(mutex_);
  absl::AnyInvocable<void(const Status&)> ready_ ABSL_GUARDED_BY(mutex_);
  PartialStart start_ ABSL_GUARDED_BY(mutex_);
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
  Status failure_ ABSL_GUARDED_BY(mutex_);
  step::RunMetadata metadata_ ABSL_GUARDED_BY(mutex_);
  std::list<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::master
