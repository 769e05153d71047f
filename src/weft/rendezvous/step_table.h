// SPDX-License-Identifier: Apache-2.0
// The steps that a task knows: running, not yet started, and lately dead.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/clock.h"
#include "weft/rendezvous/step_rendezvous.h"

namespace weft::rendezvous {

// Thread-safe.
class StepTable {
 public:
  using Make = std::function<Ref<StepRendezvous>(int64_t step)>;
  struct Limits {
    size_t tombstones = 1 << 16;
    // Steps whose tensors came, but not they themselves.
    size_t unstarted = 1 << 14;
    absl::Duration unstarted_for = absl::Minutes(5);
  };

  StepTable(Make make, const Clock* clock, Limits limits);

  // The step's rendezvous; null if the step is dead.
  Ref<StepRendezvous> FindOrMake(int64_t step);
  // The same for the one who runs it; null also if it was started before.
  Ref<StepRendezvous> Start(int64_t step);
  // Null if it is not there.
  Ref<StepRendezvous> Find(int64_t step) const;
  bool IsDead(int64_t step) const;
  // It has run, and others may still ask for its tensors: buried when they have, or by a sweep.
  void Finish(int64_t step);
  // Forgets the step and remembers that it is over.
  void Bury(int64_t step);
  // Buries steps that never started in time; called now and then.
  void Sweep();
  size_t size() const;

 private:
  struct Entry {
    Ref<StepRendezvous> rendezvous;
    bool started = false;
    absl::Duration since;
  };
  void BuryLocked(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Make make_;
  const Clock* const clock_;
  const Limits limits_;
  mutable absl::Mutex mutex_;
  size_t unstarted_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<int64_t, Entry> steps_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_set<int64_t> dead_ ABSL_GUARDED_BY(mutex_);
  std::deque<int64_t> dead_order_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::rendezvous
