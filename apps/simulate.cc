// SPDX-License-Identifier: Apache-2.0
// `weft simulate`: what a policy would make of a trace of jobs on a cluster.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"

#include "apps/command.h"
#include "base/files.h"
#include "platform/placement/scale_simulation.h"
#include "platform/scheduling/simulation_page.h"
#include "platform/scheduling/simulator.h"

namespace weft::apps {
namespace {

constexpr uint64_t kMostTraceBytes = uint64_t{1} << 30;

struct SimulateFlags {
  std::string nodes;
  std::string trace;
  std::vector<std::string> policies = {"fifo", "srtf", "las"};
  platform::SimulationOptions options;
  double fill = 0;
  std::string page;
  std::string scaling;
};

// "nan" is in every range.
CLI::Validator IsNumber() {
  return {[](const std::string& text) -> std::string {
            double value = 0;
            const bool is_number = absl::SimpleAtod(text, &value) && std::isfinite(value);
            return is_number ? "" : "'" + text + "' is no number";
          },
          ""};
}

Status RunScaling(const SimulateFlags& flags) {
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, flags.scaling, kMostTraceBytes));
  WEFT_ASSIGN_OR_RETURN(const auto jobs, platform::ParseScaleJobs(text, flags.scaling));
  platform::ScaleSimulationOptions options;
  options.seed = flags.options.seed;
  WEFT_ASSIGN_OR_RETURN(const platform::ScaledMix mix, platform::SimulateScaling(jobs, options));
  std::printf("%s", platform::FormatScaling(mix).c_str());
  return absl::OkStatus();
}

Status RunSimulations(const SimulateFlags& flags) {
  if (!flags.scaling.empty()) return RunScaling(flags);
  if (flags.nodes.empty() || flags.trace.empty()) {
    return InvalidArgument(
        "What shall be simulated? Give --nodes and --trace, or --scaling for counts that are "
        "decided as trainings go");
  }
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string nodes_text,
                        ReadFile(files, flags.nodes, kMostTraceBytes));
  WEFT_ASSIGN_OR_RETURN(const auto nodes, platform::ParseNodes(nodes_text, flags.nodes));
  WEFT_ASSIGN_OR_RETURN(const std::string trace_text,
                        ReadFile(files, flags.trace, kMostTraceBytes));
  WEFT_ASSIGN_OR_RETURN(const auto jobs, platform::ParseTrace(trace_text, flags.trace));
  if (nodes.empty()) return InvalidArgument(flags.nodes, ": there are no nodes in it");
  std::vector<platform::SimulationResult> results;
  std::vector<platform::FillResult> fills;
  for (const std::string& text : flags.policies) {
    platform::SimulationOptions options = flags.options;
    WEFT_ASSIGN_OR_RETURN(options.policy, platform::ParsePolicy(text));
    if (flags.fill > 0) {
      WEFT_ASSIGN_OR_RETURN(platform::FillResult fill,
                            platform::Fill(nodes, jobs, flags.fill, options));
      fills.push_back(std::move(fill));
    } else {
      WEFT_ASSIGN_OR_RETURN(platform::SimulationResult result,
                            platform::Simulate(nodes, jobs, options));
      results.push_back(std::move(result));
    }
  }
  if (!results.empty()) std::printf("%s", platform::FormatResults(results).c_str());
  if (!fills.empty()) std::printf("%s", platform::FormatFills(fills, flags.fill).c_str());
  if (flags.page.empty()) return absl::OkStatus();
  const std::string title =
      absl::StrCat(jobs.size(), " jobs of ", flags.trace, " on ", nodes.size(), " nodes");
  return WriteFile(files, flags.page, platform::MakeSimulationPage(title, results, fills));
}

}  // namespace

void AddSimulate(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "simulate", "What scheduling policies would make of a trace of jobs on a cluster");
  const auto flags = std::make_shared<SimulateFlags>();
  command->add_option("--nodes", flags->nodes, "Node objects in YAML or JSON, or a table (.csv)");
  command->add_option("--trace", flags->trace,
                      "A table of jobs: name, submit_time, duration, num_gpu, ...");
  command->add_option("--scaling", flags->scaling,
                      "Instead: trainings with what their counts of workers bring and cost, to "
                      "compare counts that are decided as they go with fixed ones "
                      "(docs/placement.md)");
  command
      ->add_option("--policy", flags->policies,
                   "ORDER[/PLACEMENT][+strict|+easy|+greedy]; may be repeated. Orders: " +
                       absl::StrJoin(platform::OrderNames(), ", ") +
                       "; placements: " + absl::StrJoin(platform::PlacementNames(), ", "))
      ->capture_default_str();
  command
      ->add_option("--communication", flags->options.communication,
                   "By which part a job is longer when all its pods are on different nodes")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1000.0))
      ->check(IsNumber());
  command
      ->add_option("--restart_cost", flags->options.restart_cost,
                   "Seconds of work that a displaced job does again")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e9))
      ->check(IsNumber());
  command
      ->add_option("--candidates", flags->options.most_candidates,
                   "On more than 256 nodes: how many that fit are compared; 0: all")
      ->capture_default_str()
      ->check(CLI::Range(0, 1 << 30));
  command->add_option("--seed", flags->options.seed, "Of what is random")
      ->capture_default_str()
      ->check(CLI::Range(int64_t{0}, std::numeric_limits<int64_t>::max()));
  command
      ->add_option("--fill", flags->fill,
                   "Instead of time: jobs in random order, none of which ends, until this part of "
                   "all GPUs was asked for (1.3)")
      ->check(CLI::Range(0.0, 100.0))
      ->check(IsNumber());
  command->add_option("--page", flags->page, "Write a page with plots here (HTML)");
  SetAction(command, action, [flags] { return RunSimulations(*flags); });
}

}  // namespace weft::apps
