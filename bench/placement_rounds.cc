// SPDX-License-Identifier: Apache-2.0
// What placers make of well-known training steps on six clusters, in simulation; docs/placement.md
// has the tables.
//   placement_rounds table [EVENTS]     every model on every cluster by every placer
//   placement_rounds exact              small steps, whose best placement can be found
//   placement_rounds speed              moves a second, and times of plans
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <time.h>

#include "absl/strings/str_cat.h"

#include "platform/placement/models.h"
#include "platform/placement/placer.h"
#include "platform/placement/step_simulator.h"
#include "platform/placement/surrogate.h"

namespace weft::platform {
namespace {

constexpr int kMostOps = 200;

// Of this thread: the machine may be busy with others.
double ProcessorSeconds() {
  timespec used = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

struct NamedCluster {
  const char* name;
  std::vector<NodeShape> nodes;
};

NodeShape Processors(int count, double gigabits) {
  return {"cpu", static_cast<double>(count), count * 4 * kGibibyte, 0, "", gigabits, 0};
}
NodeShape Gpus(int count, const char* model, double gigabits) {
  return {"gpu", 8, 64 * kGibibyte, count, model, gigabits, 0};
}

std::vector<NamedCluster> Clusters() {
  const NodeShape node = Processors(16, 10);
  const NodeShape slow = Processors(16, 1);
  return {
      {"uniform", {node, node, node, node}},
      {"fast_links", {4, Processors(16, 100)}},
      {"slow_links", {slow, slow, slow, slow}},
      {"uneven", {Processors(32, 10), Processors(16, 10), Processors(8, 10), Processors(4, 10)}},
      {"gpus", {Gpus(4, "V100", 25)}},
      {"mixed", {Gpus(2, "V100", 10), Gpus(1, "T4", 10), Processors(32, 10)}},
  };
}

StatusOr<double> Measure(const PlacementProblem& problem, const Placer& placer,
                         const PlacerOptions& options) {
  WEFT_ASSIGN_OR_RETURN(const Assignment assignment, placer.place(problem, options));
  return StepSimulator(problem).Seconds(assignment);
}

// All on the device that is fastest for all, which is what a program without devices gets; infinite
// where no device has the memory.
double OneDevice(const PlacementProblem& problem) {
  double least = std::numeric_limits<double>::infinity();
  for (int device = 0; device < problem.num_devices(); ++device) {
    const Assignment all(problem.num_units(), device);
    if (problem.Fits(all)) least = std::min(least, StepSimulator(problem).Seconds(all));
  }
  return least;
}

int Fail(const Status& status) {
  std::fprintf(stderr, "placement_rounds: %s\n", std::string(status.message()).c_str());
  return 1;
}

void PrintMeans(const std::map<std::string, std::pair<double, int>>& logs) {
  std::printf(
      "\nGeometric means of a step's time in parts of greedy's\n\n| placer | all |\n|---|--:|\n");
  for (const char* const name : {"one_device", "best_of_simple"}) {
    const auto found = logs.find(name);
    if (found == logs.end()) continue;
    std::printf("| %s | %.3f |\n", name, std::exp(found->second.first / found->second.second));
  }
  for (const Placer& placer : Placers()) {
    const auto found = logs.find(placer.name);
    if (found == logs.end()) continue;
    std::printf("| %s | %.3f |\n", placer.name.c_str(),
                std::exp(found->second.first / found->second.second));
  }
}

void AddTo(const std::string& name, double part,
           std::map<std::string, std::pair<double, int>>* logs) {
  auto& [sum, count] = (*logs)[name];
  sum += std::log(part);
  ++count;
}

int Table(int64_t events) {
  PlacerOptions options;
  if (events > 0) options.events = events;
  std::printf("| step | cluster | greedy ms | one_device |");
  for (const Placer& placer : Placers()) {
    if (placer.name != "exact" && placer.name != "greedy")
      std::printf(" %s |", placer.name.c_str());
  }
  std::printf("\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
  std::map<std::string, std::pair<double, int>> logs;
  for (const std::string& name : ModelNames()) {
    const StatusOr<StepGraph> step = MakeModel(name, 0);
    if (!step.ok()) return Fail(step.status());
    for (const NamedCluster& each : Clusters()) {
      const StatusOr<Cluster> cluster = MakeCluster(each.nodes);
      if (!cluster.ok()) return Fail(cluster.status());
      const StatusOr<PlacementProblem> problem =
          PlacementProblem::Make(*step, *cluster, CostModel(), kMostOps);
      if (!problem.ok()) return Fail(problem.status());
      const StatusOr<double> greedy = Measure(*problem, *FindPlacer("greedy"), options);
      if (!greedy.ok()) return Fail(greedy.status());
      const double alone = OneDevice(*problem);
      double best_simple = std::min(*greedy, alone);
      std::printf("| %s | %s | %.3f | %.3f |", name.c_str(), each.name, *greedy * 1e3,
                  alone / *greedy);
      AddTo("one_device", alone / *greedy, &logs);
      for (const Placer& placer : Placers()) {
        if (placer.name == "exact") continue;
        const StatusOr<double> seconds =
            placer.name == "greedy" ? greedy : Measure(*problem, placer, options);
        if (!seconds.ok()) return Fail(seconds.status());
        AddTo(placer.name, *seconds / *greedy, &logs);
        const bool is_simple = placer.name != "local_search" && placer.name != "annealing";
        if (is_simple) best_simple = std::min(best_simple, *seconds);
        if (placer.name != "greedy") std::printf(" %.3f |", *seconds / *greedy);
      }
      AddTo("best_of_simple", best_simple / *greedy, &logs);
      std::printf("\n");
      std::fflush(stdout);
    }
  }
  PrintMeans(logs);
  return 0;
}

// Ten ops that read some of those before them.
StepGraph SmallStep(uint64_t seed) {
  StepGraph graph;
  graph.name = absl::StrCat("random_", seed);
  PlacementRandom random(seed);
  for (int i = 0; i < 10; ++i) {
    std::vector<int> inputs;
    for (int tensor = 0; tensor < i; ++tensor) {
      if (random.Below(3) == 0) inputs.push_back(tensor);
    }
    const int op = AddOp({.name = absl::StrCat("op_", i),
                          .op = "MatMul",
                          .flops = 3e8 * (1 + random.Below(20)),
                          .output_bytes = 4e5},
                         inputs, &graph);
    AddTensor(op, 1e5 * random.Below(20), &graph);
  }
  return graph;
}

// Small steps, and those of well-known ones that the exact search gets done with, on three nodes.
int Exact() {
  std::printf(
      "| step | cluster | units | exact ms | annealing | greedy |\n|---|---|--:|--:|--:|--:|\n");
  std::vector<StepGraph> steps;
  for (uint64_t seed = 1; seed <= 6; ++seed) steps.push_back(SmallStep(seed));
  for (const std::string& name : ModelNames()) {
    StatusOr<StepGraph> step = MakeModel(name, 0);
    if (!step.ok()) return Fail(step.status());
    steps.push_back(*std::move(step));
  }
  double log_annealing = 0;
  double log_greedy = 0;
  int count = 0;
  for (const StepGraph& step : steps) {
    for (const NamedCluster& each : Clusters()) {
      std::vector<NodeShape> nodes = each.nodes;
      if (nodes.size() > 3) nodes.resize(3);
      const StatusOr<Cluster> cluster = MakeCluster(nodes);
      if (!cluster.ok()) return Fail(cluster.status());
      const StatusOr<PlacementProblem> problem =
          PlacementProblem::Make(step, *cluster, CostModel(), 14);
      if (!problem.ok()) return Fail(problem.status());
      PlacerOptions options;
      options.events = 1000000;
      options.most_visits = 1000000;
      const StatusOr<double> exact = Measure(*problem, *FindPlacer("exact"), options);
      if (absl::IsResourceExhausted(exact.status())) continue;
      const StatusOr<double> annealing = Measure(*problem, *FindPlacer("annealing"), options);
      const StatusOr<double> greedy = Measure(*problem, *FindPlacer("greedy"), options);
      for (const auto& result : {exact, annealing, greedy}) {
        if (!result.ok()) return Fail(result.status());
      }
      std::printf("| %s | %s | %d | %.3f | %.3f | %.3f |\n", step.name.c_str(), each.name,
                  problem->num_units(), *exact * 1e3, *exact / *annealing, *exact / *greedy);
      std::fflush(stdout);
      log_annealing += std::log(*exact / *annealing);
      log_greedy += std::log(*exact / *greedy);
      ++count;
    }
  }
  std::printf(
      "\nThe exact optimum in parts of each, geometric means over %d: annealing %.3f, greedy "
      "%.3f\n",
      count, std::exp(log_annealing / count), std::exp(log_greedy / count));
  return 0;
}

// A step of `ops` ops in chains that branch and join.
StepGraph LargeStep(int ops) {
  StepGraph graph;
  graph.name = "large";
  PlacementRandom random(7);
  for (int i = 0; i < ops; ++i) {
    std::vector<int> inputs;
    for (int k = 0; k < 2 && i > 0; ++k) inputs.push_back(std::max(0, i - 1 - random.Below(40)));
    const int op = AddOp({.name = absl::StrCat("op_", i),
                          .op = "MatMul",
                          .flops = 1e8 * (1 + random.Below(20)),
                          .output_bytes = 4e4},
                         inputs, &graph);
    AddTensor(op, 4e4, &graph);
  }
  return graph;
}

int TimePlan(const char* what, const StepGraph& step, const std::vector<NodeShape>& nodes) {
  const StatusOr<Cluster> cluster = MakeCluster(nodes);
  if (!cluster.ok()) return Fail(cluster.status());
  const double start = ProcessorSeconds();
  const StatusOr<PlacementProblem> problem =
      PlacementProblem::Make(step, *cluster, CostModel(), kMostOps);
  if (!problem.ok()) return Fail(problem.status());
  const StatusOr<Assignment> placed = PlaceByAnnealing(*problem, {});
  if (!placed.ok()) return Fail(placed.status());
  std::printf("%s: %d ops as %d on %d devices by annealing in %.2f s of processor time\n", what,
              step.num_ops(), problem->graph().num_ops(), cluster->num_devices(),
              ProcessorSeconds() - start);
  return 0;
}

int Speed() {
  const StatusOr<Cluster> cluster = MakeCluster(std::vector<NodeShape>(16, Processors(16, 10)));
  const StatusOr<StepGraph> step = MakeModel("resnet50", 0);
  if (!cluster.ok() || !step.ok()) return 1;
  const StatusOr<PlacementProblem> problem =
      PlacementProblem::Make(*step, *cluster, CostModel(), kMostOps);
  if (!problem.ok()) return Fail(problem.status());
  const StatusOr<Assignment> start = PlaceGreedily(*problem, {});
  if (!start.ok()) return Fail(start.status());
  SurrogateCost cost(*problem);
  PlacementRandom random(1);
  constexpr int64_t kMoves = 4000000;
  double began = ProcessorSeconds();
  AnnealSurrogate(*problem, &cost, *start, kMoves, &random);
  std::printf("surrogate: %.2f million annealing moves a second and thread\n",
              kMoves / (ProcessorSeconds() - began) * 1e-6);
  StepSimulator simulator(*problem);
  constexpr int kSimulations = 3000;
  began = ProcessorSeconds();
  double sum = 0;
  for (int i = 0; i < kSimulations; ++i) sum += simulator.Seconds(*start);
  std::printf(
      "simulator: %.1f thousand steps a second (ResNet-50 as %d ops on 16 devices, %.2f ms)\n",
      kSimulations / (ProcessorSeconds() - began) * 1e-3, problem->graph().num_ops(),
      sum / kSimulations * 1e3);
  if (TimePlan("ResNet-50", *step, std::vector<NodeShape>(16, Processors(16, 10))) != 0) return 1;
  return TimePlan("50,000 nodes", LargeStep(50000),
                  std::vector<NodeShape>(100, Processors(16, 10)));
}

}  // namespace
}  // namespace weft::platform

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "table") return weft::platform::Table(argc > 2 ? std::atoll(argv[2]) : 0);
  if (what == "exact") return weft::platform::Exact();
  if (what == "speed") return weft::platform::Speed();
  std::fprintf(stderr, "usage: placement_rounds table [EVENTS] | exact | speed\n");
  return 2;
}
