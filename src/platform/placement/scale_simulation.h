// SPDX-License-Identifier: Apache-2.0
// A mix of trainings under a simulated clock: counts that are decided as they go, and fixed ones.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "platform/placement/scale.h"

namespace weft::platform {

struct ScaleJob {
  std::string name;
  ScaleGoal goal;
  std::vector<ScaleOption> options;  // with what is predicted
  std::vector<double> rates;         // examples a second, as they are in truth
};

struct ScaleSimulationOptions {
  double interval = 60;  // seconds between two decisions
  double noise = 0.05;   // a measured rate is off by up to this
  uint64_t seed = 1;
  ScaleRules rules;
};

struct ScaledJob {
  double seconds = 0;
  double dollars = 0;
  int changes = 0;
  bool in_time = false;
  bool in_budget = false;
};

// One training with counts that DecideScale chooses, or with one count for good.
StatusOr<ScaledJob> RunScaled(const ScaleJob& job, const ScaleSimulationOptions& options);
ScaledJob RunFixed(const ScaleJob& job, size_t option);

// All trainings of a mix with so many workers and servers each, or the nearest that they can have
// below.
struct FixedCount {
  int workers = 0;
  int servers = 0;
  double dollars = 0;
  int64_t in_time = 0;
  double DollarsPerModel() const {
    return in_time > 0 ? dollars / static_cast<double>(in_time) : 0;
  }
};
struct ScaledMix {
  int64_t jobs = 0;
  std::vector<FixedCount> fixed;  // by workers and servers
  double dollars = 0;
  int64_t in_time = 0;
  int most_changes = 0;
  std::vector<std::string> missed;  // late, though one of the fixed counts would not be

  double DollarsPerModel() const {
    return in_time > 0 ? dollars / static_cast<double>(in_time) : 0;
  }
  // Least dollars for a model that is trained in time; null where no count trains any.
  const FixedCount* BestFixed() const;
  // The least dollars of those that train as many models in time as decided counts do, or, if none
  // does, of those that train the most.
  const FixedCount* MostInTime() const;
};
StatusOr<ScaledMix> SimulateScaling(const std::vector<ScaleJob>& jobs,
                                    const ScaleSimulationOptions& options);

// {"format": "weft.dev/scaling", "version": 1, "prices": {"V100": 3.06}, "jobs": [
//   {"name": "bert", "examples": 1e6, "deadline": 7200, "budget": 50, "options":
//     [{"kind": "V100", "workers": 1, "servers": 2, "server_kind": "c5.2xlarge", "rate": 8.6,
//       "predicted": 9}]}]}
// A worker is one node of the kind, and so is a server, unless server_kind says which; deadline
// (seconds), budget, servers, their kind and predicted may be left out. InvalidArgument names the
// place.
StatusOr<std::vector<ScaleJob>> ParseScaleJobs(const std::string& text, const std::string& file);

// A table for people.
std::string FormatScaling(const ScaledMix& mix);

}  // namespace weft::platform
