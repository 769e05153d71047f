// SPDX-License-Identifier: Apache-2.0
// `weft exec`: the first process of a container.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "absl/strings/match.h"

#include "apps/command.h"
#include "base/clock.h"
#include "base/files.h"
#include "net/http_server.h"
#include "platform/launch/task_output.h"
#include "platform/pods/process_host.h"

namespace weft::apps {
namespace {

struct ExecFlags {
  platform::ProcessWish wish;
  int64_t restart_limit = 3;
  double grace_s = 25;
  int status_port = -1;
  std::string status_file;
  std::string termination_log = "/dev/termination-log";
};

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Their own stay with them: a program that starts a `weft exec` below us shall not do it all again.
std::vector<std::string> InheritedEnvironment() {
  std::vector<std::string> environment;
  for (const std::string& line : CurrentEnvironment()) {
    if (!absl::StartsWith(line, "WEFT_PROCESSES=")) environment.push_back(line);
  }
  return environment;
}

StatusOr<std::unique_ptr<HttpServer>> StartPage(int port, const platform::ProcessReport* report) {
  HttpServer::Options options;
  options.address.port = port;
  const auto health = [report](const HttpRequest& /*request*/) {
    HttpResponse response;
    response.status = report->IsHealthy() ? 200 : 503;
    response.body = report->IsHealthy() ? "ok\n" : report->Text();
    return response;
  };
  const auto state = [report](const HttpRequest& /*request*/) {
    HttpResponse response;
    response.content_type = "application/json";
    response.body = report->Text();
    return response;
  };
  return HttpServer::Start(options, {{"/healthz", health}, {"/status", state}});
}

// A kubelet makes the file; where there is none nobody would read it.
void LeaveMessage(const std::string& path, const platform::ProcessReport& report) {
  if (path.empty() || ::access(path.c_str(), W_OK) != 0) return;
  RealFileSystem files;
  const Status status = WriteFile(files, path, report.TerminationMessage());
  if (!status.ok()) std::fprintf(stderr, "weft exec: %s\n", std::string(status.message()).c_str());
}

StatusOr<int> RunProcesses(ExecFlags flags) {
  flags.wish.tf_config = Variable("TF_CONFIG");
  if (flags.wish.processes.empty()) flags.wish.processes = Variable("WEFT_PROCESSES");
  flags.wish.visible_gpus = Variable("CUDA_VISIBLE_DEVICES");
  platform::ProcessHost::Options options;
  WEFT_ASSIGN_OR_RETURN(options.processes, platform::PlanProcesses(flags.wish));
  AdoptOrphans();
  WEFT_ASSIGN_OR_RETURN(const auto guard, ProcessGuard::Start());
  platform::TaskOutput::Options output_options;
  for (const platform::ProcessPlan& plan : options.processes)
    output_options.tasks.push_back(plan.name);
  output_options.has_names = options.processes.size() > 1;
  WEFT_ASSIGN_OR_RETURN(const auto output, platform::TaskOutput::Create(std::move(output_options)));
  platform::ProcessReport report(flags.status_file);
  options.environment = InheritedEnvironment();
  options.grace = absl::Seconds(flags.grace_s);
  options.pacing = {.first = absl::Milliseconds(500),
                    .second = absl::Seconds(1),
                    .longest = absl::Seconds(30),
                    .steady_after = absl::Minutes(1),
                    .limit = flags.restart_limit};
  options.listener = [&](const std::string& process, int descriptor,
                         const std::vector<std::string>& lines) {
    if (descriptor == 0) return output->Finish(process);
    output->Print(process, descriptor, lines);
    for (const std::string& line : lines) report.Hear(process, line);
  };
  options.report = &report;
  options.guard = guard.get();
  RealClock clock;
  options.clock = &clock;
  WEFT_ASSIGN_OR_RETURN(const auto host, platform::ProcessHost::Create(std::move(options)));
  std::unique_ptr<HttpServer> page;
  if (flags.status_port >= 0) {
    WEFT_ASSIGN_OR_RETURN(page, StartPage(flags.status_port, &report));
  }
  const int exit_code = host->Run();
  // What left its process's group, if anything did.
  KillDescendants(guard->pid());
  LeaveMessage(flags.termination_log, report);
  return exit_code;
}

}  // namespace

void AddExec(CLI::App& app, const CommandLine& line, Action* action) {
  CLI::App* command = app.add_subcommand(
      "exec",
      "Be the first process of a container: run one program or several, start again, report, reap");
  const auto flags = std::make_shared<ExecFlags>();
  flags->wish.program = line.program;
  command->add_option("--processes", flags->wish.processes,
                      "How many of the program, or a list of programs, in JSON (default: "
                      "$WEFT_PROCESSES, else one)");
  command
      ->add_option("--restart", flags->wish.restart,
                   "When one is started again in this container: Never, OnFailure, Always or "
                   "ExitCode (128 and more)")
      ->capture_default_str()
      ->check(CLI::IsMember({"Never", "OnFailure", "Always", "ExitCode"}));
  command
      ->add_option("--restart_limit", flags->restart_limit,
                   "How often in a row; a minute of running makes a new row")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--grace", flags->grace_s,
                   "Seconds between the signal to end and SIGKILL; below the pod's own")
      ->capture_default_str()
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--status_port", flags->status_port,
                   "Port on loopback for /healthz and /status (0: any; default: none)")
      ->check(CLI::Range(0, 65535));
  command->add_option("--status_file", flags->status_file,
                      "Keep the state of the processes in this file, as JSON");
  command
      ->add_option("--termination_log", flags->termination_log,
                   "Where the last state goes, if the file is there")
      ->capture_default_str();
  command->footer(
      "Flags come before the two dashes, the program after them:\n"
      "  weft exec --restart OnFailure -- python train.py --steps 1000");
  command->callback([flags, action] {
    *action = [flags] {
      const StatusOr<int> exit_code = RunProcesses(*flags);
      if (exit_code.ok()) return *exit_code;
      std::fprintf(stderr, "weft exec: %s\n", std::string(exit_code.status().message()).c_str());
      return 2;
    };
  });
}

}  // namespace weft::apps
