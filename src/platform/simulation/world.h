// SPDX-License-Identifier: Apache-2.0
// What all processes of a schedule share: the cluster, chance, and how much of it may still go
// wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

#include "platform/simulation/cluster.h"
#include "platform/simulation/random.h"

namespace weft::platform::simulation {

struct World {
  World(uint64_t seed, int fault_budget, const Setting& setting)
      : cluster(seed, setting),
        random(seed ^ 0x5eed),
        faults_left(fault_budget),
        elects(setting.has_election) {}

  // True once in `n` times while faults are left.
  bool Fails(uint64_t n) {
    if (faults_left == 0 || !random.OneIn(n)) return false;
    --faults_left;
    ++faults;
    return true;
  }
  template <typename... Args>
  void Note(const Args&... args) {
    ++steps;
    if (!is_traced) return;
    trace.push_back(absl::StrCat(absl::FormatDuration(cluster.clock()->Monotonic()), " ", args...));
  }
  absl::Duration now() { return cluster.clock()->Monotonic(); }

  SimulatedCluster cluster;
  Random random;
  int faults_left;
  const bool elects;
  int faults = 0;
  int64_t calls = 0;
  int64_t writes = 0;  // that had an effect, but for those of leases
  absl::Duration pods_refused_until = absl::ZeroDuration();  // the quota is full
  uint64_t steps = 0;
  bool is_traced = false;
  std::vector<std::string> trace;
  // Requests of processes that are no more: they happen all the same.
  std::vector<std::pair<absl::Duration, std::function<void()>>> late;
};

}  // namespace weft::platform::simulation
