// SPDX-License-Identifier: Apache-2.0
// `weft run`: a TFJob, or one program in several roles, as local processes.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

#include "apps/command.h"
#include "apps/plan_inputs.h"
#include "apps/pods.h"
#include "apps/temporary_folder.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "net/yaml.h"
#include "platform/console/manifests.h"
#include "platform/jobs/tfjob_controller.h"
#include "platform/launch/foreground_run.h"
#include "platform/object/fields.h"
#include "platform/object/tfjob.h"
#include "platform/placement/plan.h"
#include "platform/pods/pod_executor.h"
#include "platform/store/embedded/embedded_store.h"

namespace weft::apps {
namespace {

using platform::RestartPolicy;

struct RunFlags {
  std::string file;
  std::string job;
  platform::ProgramJob program;
  std::string restart;
  int64_t backoff_limit = -1;
  double grace_s = 10;
  std::string log_folder;
  std::string working_directory;
  std::string state;
  std::vector<std::string> command_line;
  std::string cost_file;
  std::string distribution;
  std::string nodes;
  std::string shapes;
};

constexpr char kAuto[] = "auto";
constexpr char kCounts[] = "counts";

bool UsesFlagsOfAProgram(const RunFlags& flags) {
  const platform::ProgramJob& program = flags.program;
  return program.ps > 0 || program.workers > 0 || program.chief || program.evaluator;
}

// `documents` gets all that the file holds.
// A file that may run, or a name that is found in PATH where there is no such file.
bool IsProgram(const std::string& word) {
  if (::access(word.c_str(), F_OK) == 0 || absl::StrContains(word, '/'))
    return ::access(word.c_str(), X_OK) == 0;
  const char* const path = std::getenv("PATH");
  for (const absl::string_view folder : absl::StrSplit(path == nullptr ? "" : path, ':')) {
    if (!folder.empty() && ::access(JoinPath(folder, word).c_str(), X_OK) == 0) return true;
  }
  return false;
}

StatusOr<platform::TfJob> ReadJob(const RunFlags& flags, std::vector<Json>* documents) {
  if (flags.file.empty()) {
    if (!UsesFlagsOfAProgram(flags) && flags.program.command.empty()) {
      return InvalidArgument(
          "What shall run? Give a TFJob, `weft run job.yaml`, or a program, "
          "`weft run --ps 1 --workers 2 -- python train.py`");
    }
    platform::ProgramJob program = flags.program;
    if (!UsesFlagsOfAProgram(flags)) program.workers = 1;
    return platform::MakeProgramJob(program);
  }
  if (!flags.program.command.empty() || UsesFlagsOfAProgram(flags)) {
    return InvalidArgument("Either a file or a program: '", flags.file,
                           "' says itself how many tasks there are and what they run");
  }
  const bool is_yaml = absl::EndsWith(flags.file, ".yaml") || absl::EndsWith(flags.file, ".yml") ||
                       absl::EndsWith(flags.file, ".json");
  const bool is_script = absl::EndsWith(flags.file, ".py");
  if (!is_yaml && (is_script || IsProgram(flags.file))) {
    return InvalidArgument("'", flags.file,
                           "' is a program, not a TFJob: write two dashes before it, "
                           "`weft run --ps 1 --workers 2 -- ",
                           is_script ? "python " : "", flags.file, "`");
  }
  WEFT_ASSIGN_OR_RETURN(const std::string text, platform::ReadManifestText(flags.file));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Json> written, ParseYamlOrJson(text, flags.file));
  *documents = platform::UnrollLists(written);
  return platform::ParseTfJobText(text, flags.file, flags.job);
}

// A terminal where a line can be written over.
bool IsLive() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr && term != nullptr &&
         absl::string_view(term) != "dumb";
}

std::string StateOf(const RunFlags& flags) {
  return flags.state.empty() ? DefaultState() : flags.state;
}

// The counts of the plan that is made from what an earlier run measured; the first run, with one
// worker, is that measurement.
Status PlanCounts(RunFlags* flags) {
  flags->program.workers = 1;
  if (::access(flags->cost_file.c_str(), F_OK) != 0) {
    std::printf("distribution: %s is not there yet, so this run has one worker and measures it\n",
                flags->cost_file.c_str());
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(const platform::StepGraph step, ReadStep({.path = flags->cost_file}));
  WEFT_ASSIGN_OR_RETURN(const platform::Cluster cluster,
                        ReadCluster(flags->nodes, flags->shapes, ""));
  const auto model = platform::CostModel::Fit({&step}, ThisMachine());
  platform::PlanOptions options;
  options.all_reduces = false;
  options.splits = false;
  options.spreads_batch = flags->distribution == kAuto;
  WEFT_ASSIGN_OR_RETURN(const platform::DistributionPlan plan,
                        platform::MakePlan(step, cluster, model, options));
  flags->program.workers = static_cast<int64_t>(plan.choice().workers.size());
  flags->program.ps = static_cast<int64_t>(plan.choice().servers.size());
  // What is measured of several workers is not what the next plan is made from.
  flags->cost_file.clear();
  std::printf("distribution: %s, %.3f ms a step expected; limit: %s\n",
              plan.choice().Describe().c_str(), plan.choice().seconds * 1e3,
              plan.choice().limit.c_str());
  if (!flags->nodes.empty() || !flags->shapes.empty()) {
    std::printf(
        "distribution: that is a plan for %zu nodes; `weft run` starts all tasks on this machine. "
        "On a cluster's nodes they run as a TFJob with `distribution: auto` (docs/placement.md)\n",
        cluster.nodes.size());
  }
  return absl::OkStatus();
}

// `--distribution counts` is for programs that take their task from TF_CONFIG. With `auto` each
// task is a server, and the leading one runs the program, which was written for one device.
Status ChooseDistribution(RunFlags* flags) {
  if (flags->distribution.empty()) return absl::OkStatus();
  const bool has_counts = UsesFlagsOfAProgram(*flags);
  if (flags->program.command.empty() || (has_counts && flags->distribution == kCounts) ||
      (!has_counts && flags->cost_file.empty())) {
    return InvalidArgument(
        "--distribution is for a program, and chooses how many tasks run it by its --cost_file: "
        "`weft run --distribution auto --cost_file costs.json --nodes nodes.yaml -- python -m weft "
        "train.py`; with auto, for programs of one device, --ps and --workers may say it instead");
  }
  if (!has_counts) WEFT_RETURN_IF_ERROR(PlanCounts(flags));
  if (flags->distribution != kAuto) return absl::OkStatus();
  std::error_code error;
  std::vector<std::string> task = {std::filesystem::read_symlink("/proc/self/exe", error).string(),
                                   "server",
                                   "--distribution",
                                   "auto",
                                   "--file_root",
                                   "/",
                                   "--status_port",
                                   "-1"};
  if (error) return Internal("Where is this program? ", error.message());
  // A job of one task has no TF_CONFIG.
  if (flags->program.workers <= 1 && flags->program.ps == 0 && !flags->program.chief) {
    for (const char* word : {"--cluster", R"({"worker": ["127.0.0.1:0"]})", "--job_name", "worker"})
      task.push_back(word);
  }
  task.push_back("--");
  task.insert(task.end(), flags->program.command.begin(), flags->program.command.end());
  flags->program.command = std::move(task);
  return absl::OkStatus();
}

StatusOr<platform::LocalJob> PlanJob(const RunFlags& flags) {
  platform::LocalSettings settings;
  WEFT_ASSIGN_OR_RETURN(const platform::TfJob job, ReadJob(flags, &settings.documents));
  settings.claim_folder = ClaimFolder(StateOf(flags));
  settings.file = flags.file.empty() ? "command line" : flags.file;
  settings.environment = CurrentEnvironment();
  settings.working_directory = flags.working_directory;
  if (flags.backoff_limit >= 0) settings.backoff_limit = flags.backoff_limit;
  const std::map<std::string, RestartPolicy> policies = {{"Always", RestartPolicy::kAlways},
                                                         {"OnFailure", RestartPolicy::kOnFailure},
                                                         {"Never", RestartPolicy::kNever},
                                                         {"ExitCode", RestartPolicy::kExitCode}};
  const auto policy = policies.find(flags.restart);
  if (policy != policies.end()) settings.restart_policy = policy->second;
  settings.grace = absl::Seconds(flags.grace_s);
  return platform::PlanLocalJob(job, settings);
}

absl::Duration ProgressPeriod() {
  if (IsLive()) return absl::Milliseconds(100);
  return ::isatty(STDOUT_FILENO) == 1 ? absl::Seconds(1) : absl::Seconds(10);
}

platform::PodExecutor::Options ExecutorOptions(const RunFlags& flags, const platform::LocalJob& job,
                                               const std::string& folder,
                                               platform::ObjectStore* store, const Clock* clock,
                                               ProcessGuard* guard, platform::TaskOutput* output) {
  platform::PodExecutor::Options options = PodOptions(store, clock, guard, /*log_folder=*/"", {});
  // Its tasks are the user's own programs, as if they were typed here.
  options.environment = WholePodEnvironment();
  AddMark(&options.environment, guard->mark());
  if (!flags.cost_file.empty()) {
    std::error_code error;
    const std::string path = std::filesystem::absolute(flags.cost_file, error).string();
    SetEnvironment(&options.environment, "WEFT_COST_FILE", path);
  }
  // Tasks write to a pipe, and would not know.
  if (IsLive()) SetEnvironment(&options.environment, "WEFT_LIVE", "1");
  options.output.progress_period = ProgressPeriod();
  options.output.keeps_returns = IsLive();
  options.volume_folder = JoinPath(folder, "volumes");
  options.claim_folder = ClaimFolder(StateOf(flags));
  // One job on one machine, which has asked for it in the foreground.
  options.takes_all_pods = true;
  // Nobody would bring it.
  options.waits = false;
  options.listener = [&job, output](const Json& pod, int descriptor,
                                    const std::vector<std::string>& lines) {
    const std::string task = platform::TaskOfPod(job, pod);
    descriptor == 0 ? output->Finish(task) : output->Print(task, descriptor, lines);
  };
  options.pacing = {.first = absl::Milliseconds(500),
                    .second = absl::Seconds(1),
                    .longest = absl::Seconds(30),
                    .steady_after = absl::Minutes(1),
                    .limit = std::nullopt};
  return options;
}

// What the job's file holds beside it, in its namespace.
Status CreateObjects(const platform::LocalJob& job, platform::ObjectStore* store) {
  for (Json object : job.objects) {
    const platform::ResourceType* const type =
        platform::FindKind("", platform::StringField(object, {"kind"}));
    platform::EraseField(&object, {"metadata", "namespace"});
    WEFT_RETURN_IF_ERROR(
        store->Create(*type, platform::NamespaceOf(job.object), std::move(object), {}).status());
  }
  return absl::OkStatus();
}

// The control plane of `weft up` without its port and its files, for one job.
StatusOr<int> RunOnOwnControlPlane(const RunFlags& flags, const platform::LocalJob& job) {
  AdoptOrphans();
  WEFT_ASSIGN_OR_RETURN(const auto guard, ProcessGuard::Start());
  WEFT_ASSIGN_OR_RETURN(const OwnedFd interrupts, platform::BlockInterrupts());
  platform::TaskOutput::Options output_options;
  for (const platform::LocalTask& task : job.tasks) output_options.tasks.push_back(task.name);
  output_options.log_folder = flags.log_folder;
  output_options.use_color = std::getenv("NO_COLOR") == nullptr;
  WEFT_ASSIGN_OR_RETURN(const auto output, platform::TaskOutput::Create(std::move(output_options)));
  RealClock clock;
  platform::EmbeddedStore::Options store_options;
  store_options.clock = &clock;
  WEFT_ASSIGN_OR_RETURN(const auto store, platform::EmbeddedStore::Open(std::move(store_options)));
  platform::TfJobController::Options job_options;
  job_options.store = store.get();
  job_options.clock = &clock;
  job_options.first_wait = absl::Seconds(1);
  job_options.longest_wait = absl::Seconds(30);
  job_options.steady_after = absl::Minutes(1);
  job_options.lists_evaluators = false;
  WEFT_RETURN_IF_ERROR(CreateObjects(job, store.get()));
  const TemporaryFolder folder("weft-run");
  StatusOr<int> exit_code = Internal("The job did not run");
  {
    platform::TfJobController jobs(job_options);
    platform::PodExecutor executor(
        ExecutorOptions(flags, job, folder.path(), store.get(), &clock, guard.get(), output.get()));
    executor.Start();
    jobs.Start(1);
    platform::ForegroundOptions options;
    options.store = store.get();
    options.clock = &clock;
    options.output = output.get();
    options.interrupts = interrupts.get();
    options.watch.grace = absl::Seconds(flags.grace_s);
    options.screen.command_line = flags.command_line;
    options.screen.log_folder = flags.log_folder;
    exit_code = platform::RunInForeground(job, options);
  }
  // What left its task's group, if anything did.
  KillDescendants(guard->pid());
  return exit_code;
}

int RunJob(RunFlags flags) {
  if (const Status chosen = ChooseDistribution(&flags); !chosen.ok()) {
    std::fprintf(stderr, "weft run: %s\n", std::string(chosen.message()).c_str());
    return 2;
  }
  std::fflush(stdout);  // before what the tasks write
  const StatusOr<platform::LocalJob> job = PlanJob(flags);
  if (!job.ok()) {
    std::fprintf(stderr, "weft run: %s\n", std::string(job.status().message()).c_str());
    return 2;
  }
  const StatusOr<int> exit_code = RunOnOwnControlPlane(flags, *job);
  if (exit_code.ok()) return *exit_code;
  std::fprintf(stderr, "weft run: %s\n", std::string(exit_code.status().message()).c_str());
  return 1;
}

}  // namespace

void AddRun(CLI::App& app, const CommandLine& line, Action* action) {
  CLI::App* run = app.add_subcommand(
      "run", "Run a TFJob, or one program in several roles, as local processes with TF_CONFIG set");
  const auto flags = std::make_shared<RunFlags>();
  flags->program.command = line.program;
  flags->command_line = line.words;
  run->add_option("file", flags->file,
                  "The TFJob, in YAML or JSON (kubeflow.org/v1 or v1beta1); - for stdin");
  run->add_option("--job", flags->job, "Which TFJob of the file, when it holds several");
  run->add_option("--ps", flags->program.ps, "Parameter servers, without a file")
      ->check(CLI::Range(0, 10000));
  run->add_option("--workers", flags->program.workers, "Workers, without a file")
      ->check(CLI::Range(0, 10000));
  run->add_flag("--chief", flags->program.chief, "A chief beside the workers, without a file");
  run->add_flag("--evaluator", flags->program.evaluator, "An evaluator, without a file");
  run->add_option("--restart", flags->restart,
                  "Restart policy of all tasks, instead of the file's: Always, OnFailure, Never or "
                  "ExitCode (128 and more are started again; the default without a file)")
      ->check(CLI::IsMember({"Always", "OnFailure", "Never", "ExitCode"}));
  run->add_option("--backoff_limit", flags->backoff_limit, "Restarts of all tasks together")
      ->check(CLI::NonNegativeNumber);
  run->add_option("--grace", flags->grace_s, "Seconds between SIGTERM and SIGKILL")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  run->add_option("--log_dir", flags->log_folder, "Also write each task's lines to DIR/<task>.log");
  run->add_option("--state", flags->state,
                  "Folder for the data of claims (default: ~/.local/state/weft)");
  run->add_option("--cost_file", flags->cost_file,
                  "Write what a step costs to this file, for `weft plan` (of several tasks: a file "
                  "each, with the task's name in its own)");
  run->add_option(
         "--distribution", flags->distribution,
         "auto: a program for one device, whose training the tasks' servers spread over them; as "
         "many as are best by its --cost_file on the nodes of --nodes or --shape (without that "
         "file, one that writes it), or as --ps and --workers say. counts: only so many tasks of "
         "a program that takes its task from TF_CONFIG")
      ->check(CLI::IsMember({kAuto, kCounts}));
  run->add_option("--nodes", flags->nodes, "For --distribution: as for `weft plan`");
  run->add_option("--shape", flags->shapes, "For --distribution: as for `weft plan`");
  run->add_option("--working_dir", flags->working_directory,
                  "Where the tasks run, instead of the file's workingDir or this folder");
  run->footer(
      "Flags come before the two dashes, the program after them:\n"
      "  weft run --ps 1 --workers 2 -- python train.py --steps 1000");
  run->callback([flags, action] { *action = [flags] { return RunJob(*flags); }; });
}

}  // namespace weft::apps
