// SPDX-License-Identifier: Apache-2.0
#include "apps/plan_program.h"

#include <memory>
#include <utility>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "base/subprocess.h"

namespace weft::apps {
namespace {

constexpr int kLookMilliseconds = 100;
constexpr absl::Duration kGrace = absl::Seconds(10);

}  // namespace

Status MeasureProgram(const std::vector<std::string>& program, const std::string& path) {
  SpawnOptions options{
      .argv = {"/proc/self/exe", "server", "--cluster", R"({"worker": ["127.0.0.1:0"]})",
               "--job_name", "worker", "--status_port", "-1", "--cost_file", path, "--"},
      .environment = CurrentEnvironment()};
  options.argv.insert(options.argv.end(), program.begin(), program.end());
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Subprocess> server, Subprocess::Spawn(options));
  pollfd end = {.fd = server->pidfd(), .events = POLLIN};
  while (::access(path.c_str(), R_OK) != 0) {
    if (::poll(&end, 1, kLookMilliseconds) > 0) break;
  }
  server->Signal(SIGTERM);
  const StatusOr<ExitState> exit = server->Wait(2 * kGrace);
  if (::access(path.c_str(), R_OK) == 0) return absl::OkStatus();
  return FailedPrecondition(
      "The program ended (", exit.ok() ? DescribeExit(*exit) : std::string(exit.status().message()),
      ") before one of its steps was traced, the fifth of a session that names no target: does it "
      "run TensorFlow itself? Start it with `python -m weft`");
}

}  // namespace weft::apps
