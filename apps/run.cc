// SPDX-License-Identifier: Apache-2.0
// `weft run`: a TFJob, or one program in several roles, as local processes.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "absl/strings/match.h"

#include "apps/command.h"
#include "net/socket_address.h"
#include "platform/launch/local_run.h"

namespace weft::apps {
namespace {

using platform::RestartPolicy;

struct Flags {
  std::string file;
  std::string job;
  platform::ProgramJob program;
  std::string restart;
  int64_t backoff_limit = -1;
  double grace_s = 10;
  std::string log_folder;
  std::string working_directory;
  std::vector<std::string> command_line;
};

bool UsesFlagsOfAProgram(const Flags& flags) {
  const platform::ProgramJob& program = flags.program;
  return program.ps > 0 || program.workers > 0 || program.chief || program.evaluator;
}

StatusOr<platform::TfJob> ReadJob(const Flags& flags) {
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
  if (!is_yaml && ::access(flags.file.c_str(), X_OK) == 0) {
    return InvalidArgument("'", flags.file,
                           "' is a program, not a TFJob: write two dashes before it, "
                           "`weft run --ps 1 --workers 2 -- ",
                           flags.file, "`");
  }
  RealFileSystem files;
  WEFT_ASSIGN_OR_RETURN(const std::string text, ReadFile(files, flags.file, 4 << 20));
  return platform::ParseTfJobText(text, flags.file, flags.job);
}

std::string OurFolder() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
  return length <= 0 ? "" : ParentPath(absl::string_view(path, static_cast<size_t>(length)));
}

// A terminal where a line can be written over.
bool IsLive() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr && term != nullptr &&
         absl::string_view(term) != "dumb";
}

StatusOr<platform::LocalJob> PlanJob(const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const platform::TfJob job, ReadJob(flags));
  platform::LocalSettings settings;
  settings.file = flags.file.empty() ? "command line" : flags.file;
  settings.environment = CurrentEnvironment();
  // Tasks write to a pipe, and would not know.
  if (IsLive()) settings.environment.push_back("WEFT_LIVE=1");
  settings.program_folder = OurFolder();
  settings.working_directory = flags.working_directory;
  if (flags.backoff_limit >= 0) settings.backoff_limit = flags.backoff_limit;
  const std::map<std::string, RestartPolicy> policies = {{"Always", RestartPolicy::kAlways},
                                                         {"OnFailure", RestartPolicy::kOnFailure},
                                                         {"Never", RestartPolicy::kNever},
                                                         {"ExitCode", RestartPolicy::kExitCode}};
  const auto policy = policies.find(flags.restart);
  if (policy != policies.end()) settings.restart_policy = policy->second;
  WEFT_ASSIGN_OR_RETURN(const std::vector<int> ports, FindFreeLoopbackPorts(CountPorts(job)));
  return platform::PlanLocalJob(job, settings, ports);
}

int RunJob(const Flags& flags) {
  const StatusOr<platform::LocalJob> job = PlanJob(flags);
  if (!job.ok()) {
    std::fprintf(stderr, "weft run: %s\n", std::string(job.status().message()).c_str());
    return 2;
  }
  platform::LocalRunOptions options;
  options.run.grace = absl::Seconds(flags.grace_s);
  options.output.log_folder = flags.log_folder;
  options.output.use_color = std::getenv("NO_COLOR") == nullptr;
  options.output.is_live = IsLive();
  options.output.progress_period = absl::Seconds(10);
  if (::isatty(STDOUT_FILENO) == 1) options.output.progress_period = absl::Seconds(1);
  if (options.output.is_live) options.output.progress_period = absl::Milliseconds(100);
  options.screen.command_line = flags.command_line;
  options.screen.log_folder = flags.log_folder;
  const StatusOr<int> exit_code = platform::RunLocally(*job, options);
  if (exit_code.ok()) return *exit_code;
  std::fprintf(stderr, "weft run: %s\n", std::string(exit_code.status().message()).c_str());
  return 1;
}

}  // namespace

void AddRun(CLI::App& app, const CommandLine& line, Action* action) {
  CLI::App* run = app.add_subcommand(
      "run", "Run a TFJob, or one program in several roles, as local processes with TF_CONFIG set");
  const auto flags = std::make_shared<Flags>();
  flags->program.command = line.program;
  flags->command_line = line.words;
  run->add_option("file", flags->file, "The TFJob, in YAML or JSON (kubeflow.org/v1 or v1beta1)");
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
  run->add_option("--working_dir", flags->working_directory,
                  "Where the tasks run, instead of the file's workingDir or this folder");
  run->footer(
      "Flags come before the two dashes, the program after them:\n"
      "  weft run --ps 1 --workers 2 -- python train.py --steps 1000");
  run->callback([flags, action] { *action = [flags] { return RunJob(*flags); }; });
}

}  // namespace weft::apps
