// SPDX-License-Identifier: Apache-2.0
// Puts on pods how far they have come, as they print it: what `kubectl get tfjob` shows.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "net/json.h"
#include "platform/object/update_staleness.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Reads lines such as "step 120/600  loss 0.25" (ParseProgressLine), and what parameter servers say
// of stale updates (UpdateStaleness), and writes the annotation weft.dev/progress. Of one thread,
// on which it calls the store. Borrows its arguments.
class ProgressReporter {
 public:
  ProgressReporter(ObjectStore* store, const Clock* clock, absl::Duration period)
      : store_(store), clock_(clock), period_(period) {}

  // As a listener of PodExecutor: no lines mean that the container has ended. At most one write a
  // period and pod, and one at the end.
  void Hear(const Json& pod, const std::vector<std::string>& lines);

 private:
  struct State {
    int64_t first_step = 0;  // since the program began, or began again
    absl::Duration first_heard;
    Json latest;  // null: no step yet
    ToldStaleness staleness;
    bool is_written = true;
    absl::Duration written = -absl::InfiniteDuration();
  };
  void HearStep(Json progress, State* state) const;
  void Write(const Json& pod, State* state);

  ObjectStore* const store_;
  const Clock* const clock_;
  const absl::Duration period_;
  std::map<std::string, State> pods_;  // by uid
};

}  // namespace weft::platform
