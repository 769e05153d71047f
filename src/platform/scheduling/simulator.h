// SPDX-License-Identifier: Apache-2.0
// A trace of jobs on a cluster under a simulated clock, by the decision that schedules real pods.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "platform/scheduling/dispatcher.h"
#include "platform/scheduling/trace.h"

namespace weft::platform {

struct SimulatedPolicy {
  std::string order = "fifo";
  std::string placement = "packing";
  Backfill backfill = Backfill::kStrict;
  std::string name;  // as it was written
};
// "ORDER[/PLACEMENT][+strict|+easy|+greedy]", as "srtf/consolidation". fifo is strict without a
// word, all others greedy. InvalidArgument names what there is.
StatusOr<SimulatedPolicy> ParsePolicy(absl::string_view text);

struct SimulationOptions {
  SimulatedPolicy policy;
  // By how much a job is longer when all its pods are on different nodes: 0.5 is half as much
  // again. Between, by the part of its pairs of pods that are apart.
  double communication = 0;
  double restart_cost = 0;   // seconds of work that a displaced job does again
  double spared = 0;         // Dispatcher
  int most_candidates = 64;  // PlaceOptions; 0: all nodes are looked at
  uint64_t seed = 1;
};

// Seconds, and parts of 1. Jobs that never fit are left out of the times.
struct SimulationResult {
  std::string policy;
  int64_t jobs = 0;
  int64_t never_ran = 0;
  int64_t displaced = 0;
  int64_t events = 0;  // submissions, starts, displacements, ends
  double mean_completion = 0;
  double median_completion = 0;
  double p95_completion = 0;
  double mean_waiting = 0;
  double makespan = 0;
  double utilisation = 0;    // GPU time in use (processor time without GPUs), until the last start
  double fragmentation = 0;  // part of the GPUs that were free while somebody waited for some
  double fairness = 0;       // Jain's index of completion by duration: 1 is alike for all
  double wall_seconds = 0;   // of the simulation itself
  std::vector<double> completions;                // sorted
  std::vector<std::pair<double, double>> in_use;  // over time
};

StatusOr<SimulationResult> Simulate(const std::vector<NodeDescription>& nodes,
                                    const std::vector<TraceJob>& jobs,
                                    const SimulationOptions& options);

// Jobs drawn from the trace in random order fill the cluster, and none ends, until `load` times its
// GPUs were asked for. Of each step what was asked for and what is still unallocated, in parts of
// all GPUs: the measure by which packing policies are compared (Weng et al., ATC 2023).
struct FillResult {
  std::string policy;
  std::vector<std::pair<double, double>> unallocated;
  double at_end = 0;
  int64_t failed = 0;  // jobs that found no room
};
StatusOr<FillResult> Fill(const std::vector<NodeDescription>& nodes,
                          const std::vector<TraceJob>& jobs, double load,
                          const SimulationOptions& options);

}  // namespace weft::platform
