// SPDX-License-Identifier: Apache-2.0
// How a step would best be distributed over a cluster: what there is to choose is simulated, and
// the best is taken.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "platform/placement/placer.h"
#include "platform/placement/replicate.h"
#include "platform/placement/scale.h"
#include "platform/placement/step_simulator.h"

namespace weft::platform {

struct PlanOptions {
  enum class Objective { kTime, kCost };
  Objective objective = Objective::kTime;  // most examples a second, or least cost of an epoch
  int64_t examples = 0;                    // of an epoch; 0: not known
  int most_workers = 64;
  int most_servers = 16;
  bool servers_apart = false;  // no node holds a worker and a server
  bool all_reduces = true;     // whether gradients may be summed without servers
  bool splits = true;          // whether the model itself may be split over devices
  // The step's batch is spread over the workers, as masters do that distribute a program for one
  // device; else each worker has one as large.
  bool spreads_batch = false;
  // Steps of several tasks took so many times as long as they were predicted to.
  double measured_factor = 1;
  // What is to be trained until when for how much. With examples, the cheapest way that keeps it is
  // the best; the batch must be known.
  ScaleGoal goal;
  PlacerOptions placer;
};

enum class Form : uint8_t { kSingle, kServers, kAllReduce, kSplit };
// "single", "ps", "all_reduce", "split"
const char* FormName(Form form);

// One way to distribute the step, and what the simulation made of it.
struct PlanChoice {
  Form form = Form::kSingle;
  std::vector<int> workers;  // devices; of a split model all that have something to do
  std::vector<int> servers;  // devices
  std::vector<VariablePlace> variables;
  double seconds = 0;
  double examples_per_second = 0;  // 0 where the batch is not known
  double price = 0;                // dollars an hour of the nodes in use; 0: not known
  double epoch_cost = 0;           // dollars; 0: not known
  std::string limit;               // what the step waits for, in words
  std::string misfit;              // why it cannot be had; empty: it can

  std::string Describe() const;  // "ps: 4 workers, 2 servers"
};

struct DistributionPlan {
  std::string step;
  std::string fingerprint;
  int64_t batch = 0;  // of a worker
  double predicted_single = 0;
  std::vector<PlanChoice> tried;
  size_t best = 0;
  std::string goal;  // what it means for deadline and budget, in words; empty: none was set
  // Of the best: for the page, and which op is where.
  std::shared_ptr<const PlacementProblem> problem;  // shared by copies of the plan
  Assignment assignment;
  SimulatedStep simulated;

  const PlanChoice& choice() const { return tried[best]; }
};

// ResourceExhausted if nothing fits, saying what is missing where. The cluster must outlive the
// plan. The same input gives the same plan.
StatusOr<DistributionPlan> MakePlan(const StepGraph& step, const Cluster& cluster,
                                    const CostModel& model, const PlanOptions& options);

// For people. With `explain` also what was tried and why it was not taken.
std::string FormatPlan(const DistributionPlan& plan, const Cluster& cluster, bool explain);
// For programs; ReadPlan reads what of it is acted upon.
Json PlanToJson(const DistributionPlan& plan, const Cluster& cluster);

// What of a plan a launcher needs.
struct PlanCounts {
  std::string form;
  std::string fingerprint;
  int workers = 0;
  int servers = 0;
};
// InvalidArgument for anything but a plan of this version, or if `fingerprint` is not empty and not
// the plan's: the graph has changed since.
StatusOr<PlanCounts> ReadPlan(const std::string& text, const std::string& file,
                              const std::string& fingerprint);

}  // namespace weft::platform
