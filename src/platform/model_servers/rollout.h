// SPDX-License-Identifier: Apache-2.0
// Which servers of which revision there shall be, while one takes over from another.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "platform/model_servers/server_page.h"
#include "platform/object/model_server.h"
#include "platform/reconcile/plan.h"

namespace weft::platform {

// What stands in the status.
struct RolloutState {
  std::string trusted;                              // revision; empty: none yet
  std::string candidate;                            // that takes over; empty: none does
  std::string failed;                               // that was taken back
  int64_t step = 0;                                 // of the candidate, from 0 on
  absl::Time since = absl::InfiniteFuture();        // when the step began
  absl::Time ready_since = absl::InfiniteFuture();  // when its servers were ready

  bool operator==(const RolloutState&) const = default;
};

// Servers of a revision.
struct RevisionFacts {
  int64_t wanted = 0;
  int64_t available = 0;
};

struct RolloutQuestion {
  RolloutState state;
  std::string revision;  // of the spec
  std::map<std::string, RevisionFacts> revisions;
  int64_t replicas = 1;  // of all revisions
  absl::Time now;
  // What servers of a revision have done since those of this step were ready.
  std::function<ServerCounts(const std::string& revision)> counts;
};

struct RolloutAnswer {
  RolloutState state;
  std::map<std::string, int64_t> replicas;  // of each revision that stays or is made
  std::string share;                        // of the candidate, "1 of 4"; empty: none
  std::string problem;                      // why it was taken back just now
  std::vector<PlannedEvent> events;
  absl::Duration look_again = absl::InfiniteDuration();
};

RolloutAnswer DecideRollout(const ServerRollout& rollout, const RolloutQuestion& question);

}  // namespace weft::platform
