// SPDX-License-Identifier: Apache-2.0
// Of jobs whose tasks become fewer and more while they run.
#pragma once

#include <cstdint>
#include <optional>

namespace weft::platform {

// The operator chooses a count, by what it measures.
struct ChosenByGain {
  // One more must bring this much of the examples per cost that the cheapest count brings.
  double least_gain = 0.5;
  int64_t settle_seconds = 600;  // between two such changes
};

// Of parameter servers whose number changes while the job runs: the tasks that programs name stay,
// and share fewer pods.
struct ServerPods {
  int64_t count = 1;  // wanted now
  int64_t least = 1;
  std::optional<ChosenByGain> chosen;  // empty: people choose
};

// The workers of a job may become fewer and more while it runs.
struct ElasticPolicy {
  int64_t min_replicas = 1;
  int64_t max_replicas = 1;
  std::optional<ChosenByGain> chosen;  // empty: people choose
};

}  // namespace weft::platform
