// SPDX-License-Identifier: Apache-2.0
#include "apps/server_program.h"

#include <algorithm>
#include <memory>

#include <errno.h>
#include <poll.h>
#include <sys/signalfd.h>

#include "base/log.h"
#include "base/subprocess.h"

namespace weft::apps {

cluster::TaskId LeadingTask(const cluster::ClusterSpec& cluster, const cluster::TaskId& self) {
  for (const char* job : {"chief", "master", "worker"}) {
    for (const auto& [task, address] : cluster.tasks()) {
      if (task.job == job) return task;
    }
  }
  for (const auto& [task, address] : cluster.tasks()) {
    if (task.job == self.job) return task;
  }
  return self;
}

StatusOr<int> RunServersProgram(const std::vector<std::string>& program, const std::string& target,
                                const sigset_t& signals, absl::Duration grace) {
  SpawnOptions options{.argv = program};
  for (const std::string& line : CurrentEnvironment()) {
    // To the program there is one device, and no cluster.
    if (!line.starts_with("TF_CONFIG=")) options.environment.push_back(line);
  }
  SetEnvironment(&options.environment, "WEFT_SESSION_TARGET", target);
  const OwnedFd told(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!told.is_open()) return Internal("No signalfd for the end of the program");
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> child, Subprocess::Spawn(options));
  pollfd ends[] = {{.fd = child->pidfd(), .events = POLLIN}, {.fd = told.get(), .events = POLLIN}};
  while (::poll(ends, 2, -1) < 0 && errno == EINTR) {
  }
  if (ends[0].revents == 0) {
    WEFT_LOG(INFO) << "Told to end, and so is the program";
    child->Signal(SIGTERM);
  }
  StatusOr<ExitState> exit = child->Wait(ends[0].revents == 0 ? grace : absl::InfiniteDuration());
  if (!exit.ok()) {
    child->Signal(SIGKILL);
    exit = child->Wait(absl::Seconds(10));
  }
  WEFT_RETURN_IF_ERROR(exit.status());
  return exit->ShellCode();
}

}  // namespace weft::apps
