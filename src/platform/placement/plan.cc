// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/plan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_format.h"

namespace weft::platform {
namespace {

constexpr int kMostOpsOfWorker = 1500;
constexpr int kMostOpsOfSplit = 200;
constexpr int kAllOps = std::numeric_limits<int>::max();
// A way with more devices must be better by this part to be worth them.
constexpr double kWorthMore = 0.005;

// 1, 2, 3, 4, 6, 8, 12, ... and the most.
std::vector<int> CountsUpTo(int most) {
  std::vector<int> counts;
  for (int each = 1; each < most; each *= 2) {
    counts.push_back(each);
    if (each > 1 && each + each / 2 < most) counts.push_back(each + each / 2);
  }
  counts.push_back(most);
  return counts;
}

std::string DescribeLimit(const SimulatedStep& step, const Cluster& cluster) {
  if (step.seconds <= 0) return "nothing";
  double most = 0;
  std::string limit;
  for (size_t i = 0; i < step.device_busy.size(); ++i) {
    const double part = step.device_busy[i] / step.seconds;
    if (part <= most) continue;
    most = part;
    limit = absl::StrFormat("computing on %s, which is busy for %.0f%% of the step",
                            cluster.devices[i].name, part * 100);
  }
  for (size_t i = 0; i < step.node_sending.size(); ++i) {
    const double part = step.node_sending[i] / step.seconds;
    if (part <= most) continue;
    most = part;
    limit = absl::StrFormat("the network of %s, which sends for %.0f%% of the step",
                            cluster.nodes[i].name, part * 100);
  }
  if (most < 0.5) absl::StrAppend(&limit, ": mostly ops wait for each other");
  return limit;
}

class Planner {
 public:
  Planner(const StepGraph& step, const Cluster& cluster, const CostModel& model,
          const PlanOptions& options)
      : cluster_(cluster),
        model_(model),
        options_(options),
        step_(Coarsen(step, kMostOpsOfWorker, /*keep_roles=*/true, nullptr)) {
    plan_.step = step.name;
    plan_.fingerprint = step.fingerprint;
    plan_.batch = step.batch;
    // The fastest device of a node comes first: its first GPU, or its processors.
    for (int device = 0; device < cluster.num_devices(); ++device) {
      (cluster.devices[device].profile.is_gpu ? gpus_ : processors_).push_back(device);
    }
    workers_ = gpus_.empty() ? processors_ : gpus_;
    std::stable_sort(workers_.begin(), workers_.end(), [&](int a, int b) {
      return cluster.devices[a].profile.flops > cluster.devices[b].profile.flops;
    });
  }

  StatusOr<DistributionPlan> Run() {
    TrySingle();
    const int most_workers =
        std::min<int>(options_.most_workers, static_cast<int>(workers_.size()));
    const int most_servers =
        std::min<int>(options_.most_servers, static_cast<int>(processors_.size()));
    for (const int workers : CountsUpTo(most_workers)) {
      if (workers > 1 && options_.all_reduces) TryReplicated(Form::kAllReduce, workers, 0);
      for (const int servers : CountsUpTo(most_servers)) {
        const bool fits =
            !options_.servers_apart || workers + servers <= static_cast<int>(cluster_.nodes.size());
        if (fits && servers <= std::max(workers, 2))
          TryReplicated(Form::kServers, workers, servers);
      }
    }
    if (options_.splits && cluster_.num_devices() > 1) TrySplit();
    if (has_best_ && options_.goal.examples > 0) WEFT_RETURN_IF_ERROR(ChooseByGoal());
    return Choose();
  }

 private:
  struct Trial {
    std::shared_ptr<const PlacementProblem> problem;  // shared with the plan that is returned
    Assignment assignment;
    SimulatedStep simulated;
  };

  void TrySingle() {
    PlanChoice choice = {.form = Form::kSingle, .workers = {workers_.front()}};
    TryReplicatedWith(std::move(choice), 1);
  }

  void TryReplicated(Form form, int workers, int servers) {
    PlanChoice choice = {.form = form};
    choice.workers.assign(workers_.begin(), workers_.begin() + workers);
    // Servers go to nodes that have no worker yet, then to those that have.
    std::set<int> taken;
    for (const int worker : choice.workers) taken.insert(cluster_.devices[worker].node);
    for (const bool beside : {false, true}) {
      for (const int device : processors_) {
        const bool is_beside = taken.contains(cluster_.devices[device].node);
        if (is_beside == beside && static_cast<int>(choice.servers.size()) < servers)
          choice.servers.push_back(device);
      }
    }
    TryReplicatedWith(std::move(choice), workers);
  }

  void TryReplicatedWith(PlanChoice choice, int workers) {
    ReplicatedStep replicated = Replicate(step_,
                                          {.workers = choice.workers,
                                           .servers = choice.servers,
                                           .spreads_batch = options_.spreads_batch},
                                          cluster_);
    choice.variables = std::move(replicated.variables);
    StatusOr<PlacementProblem> problem =
        PlacementProblem::Make(replicated.graph, cluster_, model_, kAllOps);
    if (!problem.ok()) return Note(std::move(choice), problem.status());
    Assignment assignment(problem->num_units(), 0);
    for (int op = 0; op < replicated.graph.num_ops(); ++op)
      assignment[problem->unit_of(problem->part_of()[op])] = replicated.device_of[op];
    const Status fits = CheckFit(*problem, assignment);
    if (!fits.ok()) return Note(std::move(choice), fits);
    Measure(std::move(choice), *std::move(problem), std::move(assignment), workers);
  }

  void TrySplit() {
    PlanChoice choice = {.form = Form::kSplit};
    StatusOr<PlacementProblem> problem =
        PlacementProblem::Make(step_, cluster_, model_, kMostOpsOfSplit);
    if (!problem.ok()) return Note(std::move(choice), problem.status());
    StatusOr<Assignment> placed = PlaceByAnnealing(*problem, options_.placer);
    if (!placed.ok()) return Note(std::move(choice), placed.status());
    const std::set<int> used(placed->begin(), placed->end());
    choice.workers.assign(used.begin(), used.end());
    Measure(std::move(choice), *std::move(problem), *std::move(placed), 1);
  }

  // Names the device, what it would hold and how much is missing.
  Status CheckFit(const PlacementProblem& problem, const Assignment& assignment) const {
    std::vector<double> held(cluster_.num_devices(), 0);
    std::vector<int> largest(cluster_.num_devices(), -1);
    for (int unit = 0; unit < problem.num_units(); ++unit) {
      const int device = assignment[unit];
      held[device] += problem.unit_bytes(unit);
      if (largest[device] < 0 || problem.unit_bytes(unit) > problem.unit_bytes(largest[device]))
        largest[device] = unit;
    }
    constexpr auto kUnit = static_cast<double>(kGibibyte);
    for (int device = 0; device < cluster_.num_devices(); ++device) {
      const double room = problem.device_bytes(device);
      if (held[device] <= room) continue;
      const int op = problem.ops_of(largest[device]).front();
      return ResourceExhausted(absl::StrFormat(
          "%.1f GiB are missing on %s, which has %.1f GiB; the largest there is '%s' with %.1f GiB",
          (held[device] - room) / kUnit, cluster_.devices[device].name, room / kUnit,
          problem.graph().ops[op].name, problem.unit_bytes(largest[device]) / kUnit));
    }
    return absl::OkStatus();
  }

  void Note(PlanChoice choice, const Status& why) {
    choice.misfit = std::string(why.message());
    plan_.tried.push_back(std::move(choice));
  }

  void Measure(PlanChoice choice, PlacementProblem problem, Assignment assignment, int workers) {
    Trial trial;
    trial.problem = std::make_shared<const PlacementProblem>(std::move(problem));
    trial.assignment = std::move(assignment);
    trial.simulated = StepSimulator(*trial.problem).Run(trial.assignment);
    choice.seconds = trial.simulated.seconds;
    if (choice.form == Form::kServers || choice.form == Form::kAllReduce)
      choice.seconds *= options_.measured_factor;
    choice.limit = DescribeLimit(trial.simulated, cluster_);
    if (step_.batch > 0 && choice.seconds > 0)
      choice.examples_per_second =
          static_cast<double>(step_.batch) * BatchesOf(workers) / choice.seconds;
    std::set<int> nodes;
    for (const auto* const devices : {&choice.workers, &choice.servers}) {
      for (const int device : *devices) nodes.insert(cluster_.devices[device].node);
    }
    for (const int node : nodes) choice.price += cluster_.nodes[node].price;
    if (options_.examples > 0 && choice.examples_per_second > 0) {
      choice.epoch_cost =
          choice.price * static_cast<double>(options_.examples) / choice.examples_per_second / 3600;
    }
    // Only the best so far keeps its timeline.
    plan_.tried.push_back(std::move(choice));
    const size_t at = plan_.tried.size() - 1;
    if (has_best_ && Gain(plan_.tried[at]) <= Gain(plan_.tried[plan_.best]) * (1 + kWorthMore))
      return;
    has_best_ = true;
    plan_.best = at;
    best_ = std::move(trial);
  }

  // The cheapest that keeps deadline and budget, in place of the best so far.
  Status ChooseByGoal() {
    std::vector<ScaleOption> options;
    std::vector<size_t> fitting;
    for (size_t i = 0; i < plan_.tried.size(); ++i) {
      const PlanChoice& each = plan_.tried[i];
      if (!each.misfit.empty()) continue;
      if (each.examples_per_second <= 0) {
        return InvalidArgument(plan_.step, ": its batch is not known, so neither is how long it ",
                               "takes to train; give --batch");
      }
      options.push_back({.kind = FormName(each.form),
                         .workers = static_cast<int>(each.workers.size()),
                         .servers = static_cast<int>(each.servers.size()),
                         .dollars_per_hour = each.price,
                         .predicted = each.examples_per_second});
      fitting.push_back(i);
    }
    WEFT_ASSIGN_OR_RETURN(const ScaleDecision decision, DecideScale(options, options_.goal, {}));
    plan_.goal = decision.reason;
    const size_t chosen = fitting[decision.option];
    if (chosen == plan_.best) return absl::OkStatus();
    // Simulated once more, for its timeline.
    const size_t tried = plan_.tried.size();
    const PlanChoice& choice = plan_.tried[chosen];
    has_best_ = false;
    switch (choice.form) {
      case Form::kSingle:
        TrySingle();
        break;
      case Form::kSplit:
        TrySplit();
        break;
      default:
        TryReplicated(choice.form, static_cast<int>(choice.workers.size()),
                      static_cast<int>(choice.servers.size()));
    }
    plan_.tried.resize(tried);
    plan_.best = chosen;
    return absl::OkStatus();
  }

  // How many of the step's batches so many workers do in a step.
  int BatchesOf(int workers) const { return options_.spreads_batch ? 1 : workers; }

  // More is better. Steps of unknown batch are compared by how many workers' they do in a second.
  double Gain(const PlanChoice& choice) const {
    const double count =
        choice.form == Form::kSplit ? 1 : BatchesOf(static_cast<int>(choice.workers.size()));
    const double rate = count / std::max(choice.seconds, 1e-12);
    const bool by_cost = options_.objective == PlanOptions::Objective::kCost && choice.price > 0;
    return by_cost ? rate / choice.price : rate;
  }

  StatusOr<DistributionPlan> Choose() {
    if (!has_best_) {
      std::string reasons;
      for (const PlanChoice& each : plan_.tried) {
        // The last one of a form has the most devices to put things on.
        if (&each == &plan_.tried.front() || &each == &plan_.tried.back())
          absl::StrAppend(&reasons, "; ", each.Describe(), ": ", each.misfit);
      }
      return ResourceExhausted(plan_.step, " fits nowhere on these nodes", reasons);
    }
    plan_.predicted_single = plan_.tried.front().misfit.empty() ? plan_.tried.front().seconds : 0;
    plan_.problem = std::move(best_.problem);
    plan_.assignment = std::move(best_.assignment);
    plan_.simulated = std::move(best_.simulated);
    return std::move(plan_);
  }

  const Cluster& cluster_;
  const CostModel& model_;
  const PlanOptions& options_;
  const StepGraph step_;
  std::vector<int> gpus_;
  std::vector<int> processors_;
  std::vector<int> workers_;
  DistributionPlan plan_;
  Trial best_;
  bool has_best_ = false;
};

}  // namespace

const char* FormName(Form form) {
  switch (form) {
    case Form::kSingle:
      return "single";
    case Form::kServers:
      return "ps";
    case Form::kAllReduce:
      return "all_reduce";
    case Form::kSplit:
      return "split";
  }
  return "";
}

std::string PlanChoice::Describe() const {
  const auto counted = [](size_t count, const char* what) {
    return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
  };
  std::string text = FormName(form);
  if (form == Form::kSplit) return absl::StrCat(text, ": ", counted(workers.size(), "device"));
  absl::StrAppend(&text, ": ", counted(workers.size(), "worker"));
  if (form == Form::kServers) absl::StrAppend(&text, ", ", counted(servers.size(), "server"));
  return text;
}

StatusOr<DistributionPlan> MakePlan(const StepGraph& step, const Cluster& cluster,
                                    const CostModel& model, const PlanOptions& options) {
  if (step.ops.empty()) return InvalidArgument(step.name, ": there are no ops in the step");
  return Planner(step, cluster, model, options).Run();
}

}  // namespace weft::platform
