// SPDX-License-Identifier: Apache-2.0
// `weft server`: one task of a cluster.
#include "weft/cluster/server.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <pthread.h>
#include <signal.h>

#include "apps/command.h"
#include "base/log.h"
#include "weft/ops/catalogue.h"

namespace weft::apps {
namespace {

struct ServerFlags {
  std::string cluster;
  std::string job_name;
  int task_index = 0;
  int data_port = 0;
  bool shared_memory = true;
  std::string bind;
  std::string root;
  std::string log_format = "text";
  int threads = 0;
  int devices = 1;
  int status_port = 0;
  double session_lease_s = 12 * 3600;
  double report_waits_s = 30;
  double grace_s = 10;
};

StatusOr<cluster::ServerOptions> OptionsFrom(const ServerFlags& flags) {
  cluster::ServerOptions options{.catalogue = &StandardCatalogue(),
                                 .bind = flags.bind,
                                 .data_port = flags.data_port,
                                 .share_memory = flags.shared_memory,
                                 .root = flags.root,
                                 .num_threads = flags.threads,
                                 .num_cpu_devices = flags.devices,
                                 .session_lease = absl::Seconds(flags.session_lease_s),
                                 .report_waits_after = absl::Seconds(flags.report_waits_s),
                                 .status_port = flags.status_port};
  if (!flags.cluster.empty()) {
    StatusOr<cluster::ClusterSpec> spec = cluster::ClusterSpec::FromJson(flags.cluster);
    if (!spec.ok()) return Annotate(spec.status(), "--cluster");
    options.cluster = *std::move(spec);
    if (flags.job_name.empty()) return InvalidArgument("--cluster needs --job_name");
    options.task = {flags.job_name, flags.task_index};
    return options;
  }
  const char* config = std::getenv("TF_CONFIG");
  if (config == nullptr || *config == '\0') {
    return InvalidArgument("Which cluster? Give --cluster and --job_name, or set TF_CONFIG");
  }
  WEFT_ASSIGN_OR_RETURN(cluster::TaskConfig task, cluster::ParseTfConfig(config));
  options.cluster = std::move(task.cluster);
  options.task = std::move(task.task);
  return options;
}

int RunServer(const ServerFlags& flags) {
  // Before any thread is made, so that all of them leave the signals to sigwait.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);

  const StatusOr<cluster::ServerOptions> options = OptionsFrom(flags);
  if (!options.ok()) {
    std::fprintf(stderr, "weft server: %s\n", std::string(options.status().message()).c_str());
    return 2;
  }
  if (flags.log_format == "json") {
    LogOptions log = LogOptionsFromEnvironment();
    log.form = LogForm::kJson;
    log.job = options->task.job;
    log.task = options->task.index;
    ConfigureLog(log);
  }
  StatusOr<std::unique_ptr<cluster::Server>> server = cluster::Server::Start(*options);
  if (!server.ok()) {
    std::fprintf(stderr, "weft server: %s\n", std::string(server.status().message()).c_str());
    return 1;
  }
  int received = 0;
  sigwait(&signals, &received);
  WEFT_LOG(INFO) << "Got " << strsignal(received) << ", shutting down";
  // A second signal ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  (*server)->Shutdown(absl::Seconds(flags.grace_s));
  return 0;
}

}  // namespace

void AddServer(CLI::App& app, Action* action) {
  CLI::App* command =
      app.add_subcommand("server", "Run one task of a cluster (or take it from TF_CONFIG)");
  auto flags = std::make_shared<ServerFlags>();  // shared with the action, which outlives this call
  command->add_option("--cluster", flags->cluster,
                      R"({"ps": ["host:port"], "worker": ["host:port"]})");
  command->add_option("--job_name", flags->job_name, "Which job of the cluster this task is of");
  command->add_option("--task_index", flags->task_index, "Which task of the job");
  command->add_option("--bind", flags->bind, "Host to listen at, instead of what the address says");
  command
      ->add_option("--data_port", flags->data_port,
                   "Port for tensors between tasks; 0: any free one")
      ->check(CLI::Range(0, 65535));
  command
      ->add_option("--shared_memory", flags->shared_memory,
                   "Read tensors of tasks on the same host in place; false: copy them")
      ->capture_default_str();
  command->add_option("--file_root,--root", flags->root,
                      "Directory that file ops of graphs stay under");
  command->add_option("--threads", flags->threads, "Compute threads; 0: one a usable core");
  command->add_option("--cpu_devices", flags->devices, "CPU devices to offer")
      ->check(CLI::Range(1, 64));
  command
      ->add_option("--status_port", flags->status_port,
                   "Loopback port of /healthz, /metrics and /waits; 0: any free one, which the log "
                   "names; -1: none")
      ->capture_default_str()
      ->check(CLI::Range(-1, 65535));
  command->add_option("--log_format", flags->log_format, "text, or json: one object a line")
      ->capture_default_str()
      ->check(CLI::IsMember({"text", "json"}));
  command->add_option("--session_lease", flags->session_lease_s,
                      "Seconds after which a session that nobody uses is closed");
  command
      ->add_option("--report_waits_after", flags->report_waits_s,
                   "Seconds after which the log says who waits for what on whom")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--grace", flags->grace_s, "Seconds for running calls after SIGTERM");
  command->callback([flags, action] { *action = [flags] { return RunServer(*flags); }; });
}

}  // namespace weft::apps
