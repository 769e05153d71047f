// SPDX-License-Identifier: Apache-2.0
#include "apps/pods.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "absl/strings/match.h"

#include "base/files.h"
#include "base/subprocess.h"
#include "platform/devices/machine.h"
#include "platform/pods/progress_reporter.h"

namespace weft::apps {
namespace {

std::string OurFolder() {
  char path[4096];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
  return length <= 0 ? "" : ParentPath(absl::string_view(path, static_cast<size_t>(length)));
}

// What pods inherit: ours, with our programs first in PATH, without what belongs to another job or
// control plane.
std::vector<std::string> PodEnvironment() {
  std::vector<std::string> environment;
  for (const std::string& line : CurrentEnvironment()) {
    if (!absl::StartsWith(line, "TF_CONFIG=") && !absl::StartsWith(line, "KUBECONFIG="))
      environment.push_back(line);
  }
  const std::string path = FindEnvironment(environment, "PATH").value_or("/usr/bin:/bin");
  SetEnvironment(&environment, "PATH", absl::StrCat(OurFolder(), ":", path));
  if (!FindEnvironment(environment, "PYTHONUNBUFFERED").has_value()) {
    SetEnvironment(&environment, "PYTHONUNBUFFERED", "1");
  }
  return environment;
}

std::string WorkingDirectory() {
  char path[4096];
  return ::getcwd(path, sizeof(path)) == nullptr ? "/" : path;
}

}  // namespace

std::string DefaultState() {
  if (const char* const folder = std::getenv("XDG_STATE_HOME")) return JoinPath(folder, "weft");
  const char* const home = std::getenv("HOME");
  return JoinPath(home == nullptr ? "/tmp" : home, ".local/state/weft");
}

// Volumes are mounted, for which only whole paths will do.
std::string ClaimFolder(const std::string& state) {
  return JoinPath(JoinPath(WorkingDirectory(), state), "claims");
}

std::string VolumeFolder(const std::string& state) {
  return JoinPath(JoinPath(WorkingDirectory(), state), "volumes");
}

platform::PodExecutor::Options PodOptions(platform::ObjectStore* store, const Clock* clock,
                                          ProcessGuard* guard, const std::string& log_folder) {
  platform::PodExecutor::Options options;
  options.store = store;
  options.clock = clock;
  options.guard = guard;
  options.log_folder = log_folder;
  options.environment = PodEnvironment();
  AddMark(&options.environment, guard->mark());
  options.working_directory = WorkingDirectory();
  options.topology = platform::TopologyOf(platform::ReadMachine());
  // Shared by the copies of the function.
  const auto progress =
      std::make_shared<platform::ProgressReporter>(store, clock, absl::Seconds(2));
  options.listener = [progress](const Json& pod, int /*descriptor*/,
                                const std::vector<std::string>& lines) {
    progress->Hear(pod, lines);
  };
  return options;
}

void BeThisMachine(const std::string& node, platform::PodExecutor::Options* options) {
  const auto machine = std::make_shared<platform::Machine>(platform::ReadMachine());
  options->nodes = {platform::DescribeAsNode(*machine, node)};
  // Shared by the copies of the function.
  options->look_at_machine = [machine, node] {
    *machine = platform::LookAgain(*machine);
    return std::vector<Json>{platform::DescribeAsNode(*machine, node)};
  };
}

}  // namespace weft::apps
