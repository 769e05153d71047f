// SPDX-License-Identifier: Apache-2.0
// What is scheduled as one: the pods of a gang, or one pod.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "platform/resources/cluster_state.h"
#include "platform/resources/pod_needs.h"

namespace weft::platform {

inline constexpr double kForever = std::numeric_limits<double>::infinity();

// What quotas and shares are reckoned in: processors in thousandths, bytes of memory, thousandths
// of GPUs.
struct Usage {
  std::array<int64_t, 3> of = {};
  bool operator==(const Usage&) const = default;
};
Usage UsageOf(const PodNeeds& needs);
void AddUsage(const Usage& more, int64_t sign, Usage* to);

// Times are in seconds on the clock of whoever decides.
struct Workload {
  std::string name;
  int queue = 0;
  int64_t priority = 0;
  double submitted = 0;
  double left = kForever;  // how long it still runs, where that is known; as of `started`
  double service = 0;      // GPU-seconds that it has had before `started`
  std::vector<std::shared_ptr<const PodNeeds>> pods;

  std::vector<Place> places;  // of the pods; empty: it waits
  double started = 0;         // this time
  bool is_leaving = false;    // it was told to make room, and holds its places until it has gone

  bool is_running() const { return !places.empty(); }
  // GPUs, or processors of one without GPUs.
  double width = 0;
  Usage usage;
};
// Fills width and usage from the pods.
void Measure(Workload* workload);

inline double LeftAt(const Workload& workload, double now) {
  return workload.is_running() ? workload.left - (now - workload.started) : workload.left;
}
inline double ServiceAt(const Workload& workload, double now) {
  return workload.is_running() ? workload.service + workload.width * (now - workload.started)
                               : workload.service;
}

}  // namespace weft::platform
