// SPDX-License-Identifier: Apache-2.0
#include "weft/train/task.h"

#include <cstdlib>
#include <utility>
#include <vector>

#include <pthread.h>
#include <signal.h>

#include "absl/strings/str_cat.h"

#include "base/memory_limit.h"
#include "supervisor/supervisor.h"
#include "weft/client/session.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/ops/catalogue.h"
#include "weft/server/kept_variables.h"
#include "weft/server/server.h"

namespace weft::train {
namespace {

bool Leads(const std::string& job) { return job == "chief" || job == "master"; }

sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// `signals` must be blocked.
void ServeUntilTold(server::Server& server, const sigset_t& signals) {
  int received = 0;
  sigwait(&signals, &received);
  if (received == SIGTERM) server.HandOver();
  // A second signal ends the process at once.
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  server.Shutdown(absl::Seconds(2));
}

}  // namespace

std::string Task::WorkerDevice(int n) const {
  if (!distributed) return "";
  for (const auto& [task, address] : cluster.tasks()) {
    if (Leads(task.job)) {
      if (n == 0) return task.ToString();
      --n;
    }
  }
  return absl::StrCat("/job:worker/task:", n);
}

StatusOr<std::unique_ptr<session::Session>> Task::NewSession() const {
  client::SessionOptions options{.target = target, .catalogue = catalogue, .devices = devices};
  if (distributed) options.device_filters = {"/job:ps", Device()};
  return client::NewSession(options);
}

StatusOr<std::unique_ptr<session::Session>> Task::NewClusterSession() const {
  return client::NewSession({.target = target, .catalogue = catalogue, .devices = devices});
}

Status Task::CheckChief(absl::Duration timeout) const {
  if (!distributed || is_chief) return absl::OkStatus();
  cluster::TaskId chief{"worker", 0};
  for (const auto& [task, address] : cluster.tasks()) {
    if (Leads(task.job)) chief = task;
  }
  const auto found = cluster.tasks().find(chief);
  if (found == cluster.tasks().end()) return absl::OkStatus();
  // A session that needs nobody else.
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<session::Session> session,
                        client::NewSession({.target = absl::StrCat("grpc://", found->second),
                                            .device_filters = {chief.ToString()},
                                            .connect_timeout = timeout}));
  const Status answered = session->ListDevices().status();
  session->Close().IgnoreError();
  return Annotate(answered, chief.ToString());
}

std::unique_ptr<VariablePlacement> Task::Placement() const {
  return num_ps > 0 ? RoundRobinPlacement(num_ps) : nullptr;
}

StatusOr<Task> TaskFromEnvironment() {
  Task task;
  task.catalogue = &StandardCatalogue();
  task.devices = &StandardDevices();
  const char* config = std::getenv("TF_CONFIG");
  if (config == nullptr || *config == '\0') return task;
  WEFT_ASSIGN_OR_RETURN(cluster::TaskConfig parsed, cluster::ParseTfConfig(config));
  int workers = 0;
  int chiefs = 0;
  for (const auto& [id, address] : parsed.cluster.tasks()) {
    task.num_ps += id.job == "ps" ? 1 : 0;
    workers += id.job == "worker" ? 1 : 0;
    chiefs += Leads(id.job) ? 1 : 0;
  }
  task.cluster = std::move(parsed.cluster);
  task.id = std::move(parsed.task);
  task.distributed = true;
  task.num_workers = workers + chiefs;
  task.is_ps = task.id.job == "ps";
  task.is_evaluator = task.id.job == "evaluator";
  task.worker = Leads(task.id.job) ? 0 : task.id.index + chiefs;
  task.is_chief =
      Leads(task.id.job) || (chiefs == 0 && task.id.job == "worker" && task.id.index == 0);
  return task;
}

Status RunTask(const std::function<Status(const Task&)>& train, const TaskOptions& options) {
  WEFT_ASSIGN_OR_RETURN(Task task, TaskFromEnvironment());
  if (options.catalogue != nullptr) task.catalogue = options.catalogue;
  if (options.devices != nullptr) task.devices = options.devices;
  if (!task.distributed) return train(task);
  if (task.is_evaluator) return absl::OkStatus();
  if (task.is_ps && supervisor::IsAskedFor() && !supervisor::HasInheritance()) {
    WEFT_ASSIGN_OR_RETURN(const int code, supervisor::SuperviseThisProgram(MachineMemory()));
    return code == 0 ? absl::OkStatus()
                     : Internal("The supervised parameter server ended with code ", code);
  }
  const bool serves = task.is_ps || (options.only_chief_trains && !task.is_chief);
  // Blocked before the server's threads are made, so that none of them takes a signal.
  const sigset_t signals = EndSignals();
  if (serves) pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  server::ServerOptions server_options;
  server_options.cluster = task.cluster;
  server_options.task = task.id;
  server_options.catalogue = task.catalogue;
  server_options.devices = task.devices;
  WEFT_RETURN_IF_ERROR(server::CompleteFromEnvironment(&server_options));
  if (task.is_ps) {
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<server::KeptVariables> kept,
                          server::KeptVariables::Inherit());
    // To the end of the process: what it holds must stay while anybody may kill it.
    server_options.kept = kept.release();
  }
  // The graphs are this program's own where nobody else is let in: its files lie where it says.
  if (server_options.root.empty() && server_options.identity.has_value()) server_options.root = "/";
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<server::Server> server,
                        server::Server::Start(server_options));
  if (serves) {
    ServeUntilTold(*server, signals);
    return absl::OkStatus();
  }
  task.target = server->target();
  task.group_changed = [&server](int32_t key) { return server->HasGroupChanged(key); };
  return train(task);
}

}  // namespace weft::train
