// SPDX-License-Identifier: Apache-2.0
// `weft plan`: how a step would best be distributed over a cluster.
#include "platform/placement/plan.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "apps/command.h"
#include "apps/plan_inputs.h"
#include "apps/plan_job.h"
#include "apps/plan_program.h"
#include "apps/temporary_folder.h"
#include "base/files.h"
#include "platform/placement/models.h"
#include "platform/placement/plan_page.h"

namespace weft::apps {
namespace {

constexpr uint64_t kMostPlanBytes = uint64_t{1} << 28;

struct PlanFlags {
  StepSource source;
  std::string model;
  std::string nodes;
  std::string shapes;
  bool is_live = false;
  std::string namespace_name;
  ClusterFlags cluster;
  std::string prices;
  double gigabits = 0;
  std::vector<std::string> costs;
  bool fit = false;
  bool lists_shapes = false;
  double least_us = 20;
  std::string objective = "time";
  std::string placer;
  bool explain = false;
  bool as_json = false;
  std::string page;
  std::string output;
  std::string reuse;
  platform::PlanOptions options;
  std::vector<std::string> program;
};

void PrintShapes() {
  std::printf("%-22s %10s %8s %14s %8s %8s\n", "shape", "processors", "memory", "gpus", "Gbit/s",
              "$/h");
  for (const platform::NodeShape& shape : platform::CloudShapes()) {
    const std::string gpus = shape.gpus == 0 ? "" : absl::StrCat(shape.gpus, " ", shape.gpu_model);
    std::printf("%-22s %10.0f %5.0f GiB %14s %8.0f %8.2f\n", shape.name.c_str(), shape.processors,
                static_cast<double>(shape.memory) / static_cast<double>(platform::kGibibyte),
                gpus.c_str(), shape.gigabits, shape.price);
  }
}

StatusOr<std::vector<platform::StepGraph>> ReadMeasured(const std::vector<std::string>& paths,
                                                        bool least) {
  std::vector<platform::StepGraph> steps;
  for (const std::string& path : paths) {
    WEFT_ASSIGN_OR_RETURN(platform::StepGraph step, ReadStep({.path = path, .least = least}));
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<const platform::StepGraph*> PointersTo(const std::vector<platform::StepGraph>& steps) {
  std::vector<const platform::StepGraph*> pointers;
  for (const platform::StepGraph& step : steps) pointers.push_back(&step);
  return pointers;
}

Status PrintFit(const PlanFlags& flags) {
  std::vector<std::string> paths = flags.costs;
  if (!flags.source.path.empty()) paths.push_back(flags.source.path);
  if (paths.empty())
    return InvalidArgument("--fit needs cost files: --costs FILE, again and again");
  WEFT_ASSIGN_OR_RETURN(const auto steps, ReadMeasured(paths, flags.source.least));
  std::printf(
      "Predicted without having seen the step (ops of at least %.0f us count as ops):\n"
      "%-40s %6s %10s %10s %10s %10s\n",
      flags.least_us, "step", "ops", "an op", "by time", "the step", "data sheet");
  for (const platform::HeldOutError& error :
       platform::CrossValidate(PointersTo(steps), ThisMachine(), flags.least_us * 1e-6)) {
    std::printf("%-40s %6d %9.1f%% %9.1f%% %9.1f%% %9.1f%%\n", error.step.c_str(), error.ops,
                error.op_error * 100, error.weighted_op_error * 100, error.step_error * 100,
                error.roofline_step_error * 100);
  }
  return absl::OkStatus();
}

StatusOr<platform::StepGraph> StepOf(const PlanFlags& flags) {
  if (flags.source.path.empty() == flags.model.empty()) {
    return InvalidArgument(
        "What shall be planned? Give a cost file or a graph, `weft plan costs.json`, or --model, "
        "one of ",
        absl::StrJoin(platform::ModelNames(), ", "));
  }
  if (!flags.model.empty()) return platform::MakeModel(flags.model, flags.source.batch);
  return ReadStep(flags.source);
}

// One placer alone: which device each op would be on.
Status PrintPlacement(const PlanFlags& flags, const platform::StepGraph& step,
                      const platform::Cluster& cluster, const platform::CostModel& model) {
  WEFT_ASSIGN_OR_RETURN(const platform::Placer placer, platform::FindPlacer(flags.placer));
  WEFT_ASSIGN_OR_RETURN(const platform::PlacementProblem problem,
                        platform::PlacementProblem::Make(step, cluster, model, 200));
  WEFT_ASSIGN_OR_RETURN(const platform::Assignment assignment,
                        placer.place(problem, flags.options.placer));
  platform::StepSimulator simulator(problem);
  std::printf("%s by %s: %.3f ms a step\n", step.name.c_str(), placer.name.c_str(),
              simulator.Seconds(assignment) * 1e3);
  for (int op = 0; op < step.num_ops(); ++op) {
    const int device = assignment[problem.unit_of(problem.part_of()[op])];
    std::printf("  %s %s\n", cluster.devices[device].name.c_str(), step.ops[op].name.c_str());
  }
  return absl::OkStatus();
}

Status CheckReused(const PlanFlags& flags, const platform::StepGraph& step) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, flags.reuse, kMostPlanBytes));
  WEFT_ASSIGN_OR_RETURN(const platform::PlanCounts counts,
                        platform::ReadPlan(text, flags.reuse, step.fingerprint));
  std::printf("%s still holds: %s, %d workers, %d servers\n", flags.reuse.c_str(),
              counts.form.c_str(), counts.workers, counts.servers);
  return absl::OkStatus();
}

StatusOr<platform::Cluster> NodesFor(const PlanFlags& flags) {
  if (!flags.is_live) return ReadCluster(flags.nodes, flags.shapes, flags.prices);
  if (!flags.nodes.empty() || !flags.shapes.empty())
    return InvalidArgument("Either --live or --nodes or --shape: which nodes are there?");
  return ReadLiveCluster(flags.cluster, flags.prices);
}

StatusOr<platform::Cluster> ClusterFor(const PlanFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(platform::Cluster cluster, NodesFor(flags));
  for (platform::PlanNode& node : cluster.nodes) {
    if (flags.gigabits > 0) node.bytes_per_second = flags.gigabits * 1e9 / 8;
  }
  return cluster;
}

// The flags with the costs of the program, measured now, in place of a file.
StatusOr<PlanFlags> WithMeasured(PlanFlags flags, TemporaryFolder* folder) {
  if (flags.program.empty()) return flags;
  if (!flags.source.path.empty() || !flags.model.empty())
    return InvalidArgument("Either a program or a step: which one shall be planned?");
  if (folder->path().empty()) return Unavailable("No temporary folder for the program's costs");
  flags.source.path = JoinPath(folder->path(), "costs.json");
  WEFT_RETURN_IF_ERROR(MeasureProgram(flags.program, flags.source.path));
  return flags;
}

Status RunPlan(const PlanFlags& given) {
  if (given.lists_shapes) {
    PrintShapes();
    return absl::OkStatus();
  }
  if (absl::StartsWith(given.source.path, kJobPrefix)) {
    return PrintJobPlan({.cluster = given.cluster,
                         .name = given.source.path.substr(sizeof(kJobPrefix) - 1),
                         .namespace_name = given.namespace_name,
                         .prices = given.prices});
  }
  TemporaryFolder folder("weft-plan");
  WEFT_ASSIGN_OR_RETURN(const PlanFlags flags, WithMeasured(given, &folder));
  if (flags.fit) return PrintFit(flags);
  WEFT_ASSIGN_OR_RETURN(const platform::StepGraph step, StepOf(flags));
  if (!flags.reuse.empty()) return CheckReused(flags, step);
  WEFT_ASSIGN_OR_RETURN(const platform::Cluster cluster, ClusterFor(flags));
  WEFT_ASSIGN_OR_RETURN(std::vector<platform::StepGraph> measured,
                        ReadMeasured(flags.costs, flags.source.least));
  measured.push_back(step);
  const platform::CostModel model = platform::CostModel::Fit(PointersTo(measured), ThisMachine());
  if (!flags.placer.empty()) return PrintPlacement(flags, step, cluster, model);
  platform::PlanOptions options = flags.options;
  if (options.goal.examples <= 0 &&
      (std::isfinite(options.goal.seconds) || std::isfinite(options.goal.dollars))) {
    return InvalidArgument(
        "--deadline and --budget are of a training: give its examples, --train N");
  }
  if (flags.objective == "cost") options.objective = platform::PlanOptions::Objective::kCost;
  WEFT_ASSIGN_OR_RETURN(const platform::DistributionPlan plan,
                        platform::MakePlan(step, cluster, model, options));
  const std::string json = platform::PlanToJson(plan, cluster).Dump(1) + "\n";
  std::printf("%s", flags.as_json ? json.c_str()
                                  : platform::FormatPlan(plan, cluster, flags.explain).c_str());
  RealFileSystem files;
  if (!flags.output.empty()) WEFT_RETURN_IF_ERROR(WriteFile(files, flags.output, json));
  if (flags.page.empty()) return absl::OkStatus();
  return WriteFile(files, flags.page, platform::MakePlanPage(plan, cluster));
}

void AddGoalFlags(CLI::App* command, PlanFlags* flags) {
  platform::ScaleGoal* const goal = &flags->options.goal;
  command
      ->add_option("--train", goal->examples,
                   "Examples to train on until the model is done: the cheapest way that keeps "
                   "--deadline and --budget is used")
      ->check(CLI::PositiveNumber);
  command->add_option("--deadline", goal->seconds, "With --train: seconds until it must be done")
      ->check(CLI::PositiveNumber);
  command->add_option("--budget", goal->dollars, "With --train: dollars that it may cost")
      ->check(CLI::PositiveNumber);
}

void AddSearchFlags(CLI::App* command, PlanFlags* flags) {
  command->add_option("--most_workers", flags->options.most_workers, "More workers are not tried")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  command->add_option("--most_servers", flags->options.most_servers, "More servers are not tried")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  command->add_flag("--spread_batch", flags->options.spreads_batch,
                    "The step's batch is spread over the workers, as --distribution auto does, "
                    "instead of one as large for each");
  command
      ->add_option("--split", flags->options.splits,
                   "Whether the model itself may be split over devices")
      ->capture_default_str();
  command->add_option(
      "--placer", flags->placer, "Only place the ops, by this: " + [] {
        std::vector<std::string> names;
        for (const auto& placer : platform::Placers()) names.push_back(placer.name);
        return absl::StrJoin(names, ", ");
      }());
  command->add_option("--seed", flags->options.placer.seed, "Of searches")->capture_default_str();
}

}  // namespace

void AddPlan(CLI::App& app, const CommandLine& line, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "plan", "How a step would best be distributed over a cluster (docs/placement.md)");
  const auto flags = std::make_shared<PlanFlags>();
  flags->program = line.program;
  command->add_option("step", flags->source.path,
                      "A cost file (.json), as WEFT_COST_FILE and `weft run --cost_file` make it, "
                      "or a graph in whatever form TensorFlow writes; or tfjob/NAME, a job that "
                      "runs: which counts it should have by what was measured");
  command->add_option("--model", flags->model, "Instead: a well-known model by its name");
  command->add_option("--nodes", flags->nodes,
                      "Node objects in YAML or JSON, or a table (.csv), as for `weft simulate`");
  command->add_option("--shape", flags->shapes, "Instead: nodes of clouds, as p3.8xlarge*4");
  command->add_flag("--live", flags->is_live, "Instead: the nodes that a cluster has now");
  AddClusterFlags(command, &flags->cluster);
  command->add_option("-n,--namespace", flags->namespace_name,
                      "Of tfjob/NAME (default: the context's)");
  command->add_flag("--shapes", flags->lists_shapes, "List the shapes of clouds");
  command->add_option("--gigabits", flags->gigabits, "Instead: a second, of each node's network")
      ->check(CLI::PositiveNumber);
  command->add_option("--prices", flags->prices, "JSON: dollars an hour by shape");
  command->add_option("--target", flags->source.targets, "Of a graph: what a step runs");
  command->add_option("--batch", flags->source.batch, "Examples of a worker's step")
      ->check(CLI::Range(1, 1 << 24));
  command->add_option("--examples", flags->options.examples, "Examples of an epoch")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--costs", flags->costs, "More cost files that the cost model learns from");
  command->add_flag("--fit", flags->fit, "Only print how well the cost model predicts cost files");
  command
      ->add_option("--least_us", flags->least_us, "With --fit: shorter ops are no ops of their own")
      ->capture_default_str();
  command
      ->add_option("--objective", flags->objective, "time: most examples a second; cost: least $")
      ->capture_default_str()
      ->check(CLI::IsMember({"time", "cost"}));
  AddSearchFlags(command, flags.get());
  AddGoalFlags(command, flags.get());
  command->add_flag("--least", flags->source.least,
                    "An op takes what it took at least, not on the mean: of a busy machine");
  command->add_flag("--explain", flags->explain, "Also what was tried and why it was not taken");
  command->add_flag("--json", flags->as_json, "Print the plan as JSON");
  command->add_option("--output", flags->output, "Write the plan as JSON here");
  command->add_option("--page", flags->page, "Write a page with pictures here (HTML)");
  command->add_option("--reuse", flags->reuse, "Only say whether this plan is still for the graph");
  command->footer(
      "Instead of a file a program after two dashes, which runs until a few steps were traced:\n"
      "  weft plan --nodes nodes.yaml -- python -m weft train.py");
  SetAction(command, action, [flags] { return RunPlan(*flags); });
}

}  // namespace weft::apps
