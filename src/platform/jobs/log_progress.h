// SPDX-License-Identifier: Apache-2.0
// How far pods have come by what they print, on nodes that do not tell it themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "base/status.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Thread-safe; borrows the clock.
class LogProgress {
 public:
  // What the end of a pod's log says: {"step": 120, "steps": 600, "loss": 0.25}, of a parameter
  // server {"staleness": ...}; null: nothing.
  using Read = std::function<StatusOr<Json>(const ObjectName& pod)>;
  LogProgress(Read read, const Clock* clock) : read_(std::move(read)), clock_(clock) {}

  // Whether a look is worth the call: the task that tells for its job, or one of the first
  // parameter servers, which all workers come to, runs, and nobody else tells.
  static bool IsWanted(const Json& pod);
  // Reads the log. True when there is news.
  bool Look(const Json& pod);
  // The pods with the annotation weft.dev/progress, where Look has found something.
  std::vector<ObjectPtr> Annotate(std::vector<ObjectPtr> pods) const;
  // Forgets all others.
  void Keep(const std::set<std::string>& uids);

 private:
  struct State {
    int64_t first_step = 0;
    absl::Duration first_seen;
    int64_t last_step = -1;
    std::string staleness;
    std::string report;
  };
  // When it was, and how long the rest takes.
  void AddTimes(int64_t step, State* state, Json* report) const;

  const Read read_;
  const Clock* const clock_;
  mutable absl::Mutex mutex_;
  std::map<std::string, State> pods_ ABSL_GUARDED_BY(mutex_);  // by uid
};

}  // namespace weft::platform
