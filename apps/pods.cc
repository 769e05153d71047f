// SPDX-License-Identifier: Apache-2.0
#include "apps/pods.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "absl/strings/match.h"
#include "absl/strings/strip.h"

#include "base/file_limit.h"
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

// What a program needs to be found and to run here; all else, such as credentials, is ours.
constexpr const char* kInherited[] = {
    "PATH",     "HOME",        "USER",         "LOGNAME",      "SHELL",        "LANG",
    "LANGUAGE", "LC_*",        "TZ",           "TMPDIR",       "PYTHONPATH",   "PYTHONHOME",
    "PYTHON*",  "VIRTUAL_ENV", "CONDA_PREFIX", "CUDA_*",       "NVIDIA_*",     "LD_LIBRARY_PATH",
    "OMP_*",    "WEFT_*",      "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"};

bool Fits(absl::string_view name, absl::string_view pattern) {
  return absl::ConsumeSuffix(&pattern, "*") ? absl::StartsWith(name, pattern) : name == pattern;
}

std::vector<std::string> OnlyPassed(const std::vector<std::string>& environment,
                                    const std::vector<std::string>& passed) {
  std::vector<std::string> patterns(std::begin(kInherited), std::end(kInherited));
  patterns.insert(patterns.end(), passed.begin(), passed.end());
  std::vector<std::string> kept;
  for (const std::string& line : environment) {
    const absl::string_view name = absl::string_view(line).substr(0, line.find('='));
    for (const std::string& pattern : patterns) {
      if (!Fits(name, pattern)) continue;
      kept.push_back(line);
      break;
    }
  }
  return kept;
}

std::string WorkingDirectory() {
  char path[4096];
  return ::getcwd(path, sizeof(path)) == nullptr ? "/" : path;
}

}  // namespace

std::vector<std::string> WholePodEnvironment() {
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

void AddPassEnvironmentFlag(CLI::App* command, std::vector<std::string>* passed) {
  command
      ->add_option("--pass_env", *passed,
                   "Variable of this command that pods inherit beside PATH, HOME, LANG and what "
                   "else programs need to run here, as NAME or PREFIX*; may be repeated")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

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
                                          ProcessGuard* guard, const std::string& log_folder,
                                          const std::vector<std::string>& passed) {
  // A container that runs takes three.
  RaiseFileLimit();
  platform::PodExecutor::Options options;
  options.store = store;
  options.clock = clock;
  options.guard = guard;
  options.log_folder = log_folder;
  options.environment = OnlyPassed(WholePodEnvironment(), passed);
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
