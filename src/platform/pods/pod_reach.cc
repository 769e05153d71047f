// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/pod_reach.h"

#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "base/process_table.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kShortestWindow = absl::Milliseconds(300);
constexpr absl::Duration kLongestWindow = absl::Seconds(60);

// The first process of the container that each process belongs to; those of no container are left
// out.
std::map<pid_t, std::set<pid_t>> ByContainer(const std::vector<ProcessEntry>& table,
                                             const std::set<pid_t>& firsts) {
  std::map<pid_t, pid_t> parents;
  for (const ProcessEntry& entry : table) parents[entry.pid] = entry.parent;
  std::map<pid_t, std::set<pid_t>> members;
  for (const ProcessEntry& entry : table) {
    pid_t first = entry.pid;
    // The table was not read in one moment: a loop would need as many steps as there are processes.
    for (size_t steps = 0; steps < table.size() && firsts.count(first) == 0; ++steps) {
      const auto parent = parents.find(first);
      if (parent == parents.end() || parent->second <= 1) break;
      first = parent->second;
    }
    if (firsts.count(first) != 0) members[first].insert(entry.pid);
  }
  return members;
}

StatusOr<PodStreams> Spawn(const SpawnOptions& options) {
  PodStreams streams;
  WEFT_ASSIGN_OR_RETURN(streams.process, Subprocess::Spawn(options));
  streams.in = std::move(streams.process->stdin_pipe());
  streams.out = std::move(streams.process->stdout_pipe());
  streams.err = std::move(streams.process->stderr_pipe());
  if (options.has_terminal)
    streams.terminal = OwnedFd(::fcntl(streams.out.get(), F_DUPFD_CLOEXEC, 0));
  return streams;
}

}  // namespace

Status PodReach::CheckRunsHere(const ObjectName& name, absl::string_view what) const {
  const StatusOr<ObjectPtr> pod = executor_->FindPod(name);
  const std::string node = pod.ok() ? StringField(**pod, {"spec", "nodeName"}) : "";
  if (node.empty() || executor_->IsOwnNode(node)) return absl::OkStatus();
  return ApiError(501, "NotImplemented",
                  absl::StrCat("pod ", name.name, " runs on node ", node,
                               ", another machine, which `weft node` serves: ", what,
                               " reaches only pods of this machine's nodes; go to that machine"));
}

StatusOr<PodAccess::Start> PodReach::Prepare(const PodProgram& program) {
  WEFT_RETURN_IF_ERROR(CheckRunsHere(program.pod, "exec"));
  WEFT_ASSIGN_OR_RETURN(std::vector<PodExecutor::Running> running,
                        executor_->ListRunning(&program.pod));
  for (PodExecutor::Running& container : running) {
    if (container.container != program.container) continue;
    auto options = std::make_shared<SpawnOptions>();
    options->argv = program.argv;
    options->environment = container.command.environment;
    if (program.has_terminal && !FindEnvironment(options->environment, "TERM").has_value())
      SetEnvironment(&options->environment, "TERM", "xterm");
    options->working_directory = container.command.working_directory;
    options->owner = container.command.owner;
    options->processors = container.processors;
    options->takes_input = program.takes_input;
    options->has_terminal = program.has_terminal;
    options->capture_output = true;
    options->guard = guard_;
    // Held until it has started.
    return Start([options, mounts = container.command.mounts,
                  group = std::make_shared<OwnedFd>(std::move(container.control_group))] {
      options->mounts = mounts.get();
      options->control_group = group->get();
      return Spawn(*options);
    });
  }
  return ApiError(400, "BadRequest",
                  absl::StrCat("container ", program.container, " of pod ", program.pod.name,
                               " does not run (see `kubectl describe pod ", program.pod.name,
                               "`): programs run beside its own only while that does"));
}

StatusOr<PodAccess::Start> PodReach::Attach(const PodProgram& program) {
  WEFT_RETURN_IF_ERROR(CheckRunsHere(program.pod, "attach"));
  StatusOr<ContainerStreams> streams =
      executor_->Attach(program.pod, program.container, program.takes_input);
  if (!streams.ok()) {
    if (streams.status().code() != absl::StatusCode::kFailedPrecondition) return streams.status();
    return ApiError(400, "BadRequest",
                    absl::StrCat("pod ", program.pod.name, ": ", streams.status().message()));
  }
  // Held until the client has opened its channels.
  return Start([held = *std::move(streams)]() mutable -> StatusOr<PodStreams> {
    PodStreams attached;
    attached.in = std::move(held.in);
    attached.out = std::move(held.out);
    attached.err = std::move(held.err);
    attached.terminal = std::move(held.terminal);
    return attached;
  });
}

StatusOr<OwnedFd> PodReach::Connect(const ObjectName& pod, int port) {
  WEFT_RETURN_IF_ERROR(CheckRunsHere(pod, "port-forward"));
  WEFT_ASSIGN_OR_RETURN(const SocketAddress place, executor_->LocalPortOf(pod, port));
  const int local = place.port;
  // On this machine a connection is made or refused at once.
  Status refused;
  std::vector<std::string> hosts = {"127.0.0.1", "::1"};
  if (!place.host.empty()) hosts = {place.host};
  for (const std::string& host : hosts) {
    const bool is_six = absl::StrContains(host, ':');
    OwnedFd fd(::socket(is_six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!fd.is_open()) continue;
    sockaddr_in four = {};
    four.sin_family = AF_INET;
    four.sin_port = htons(static_cast<uint16_t>(local));
    if (!is_six) ::inet_pton(AF_INET, host.c_str(), &four.sin_addr);
    sockaddr_in6 six = {};
    six.sin6_family = AF_INET6;
    six.sin6_port = four.sin_port;
    six.sin6_addr = in6addr_loopback;
    const auto* const address =
        is_six ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
    if (::connect(fd.get(), address, is_six ? sizeof(six) : sizeof(four)) == 0) {
      ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
      return fd;
    }
    if (refused.ok()) refused = ErrnoStatus(errno, "connect to", absl::StrCat(host, ":", local));
  }
  return refused;
}

PodReach::Sample PodReach::TakeSample(std::vector<PodExecutor::Running>* running, PodUsage* usage) {
  Sample sample;
  sample.time = clock_->Now();
  const std::vector<ProcessEntry> table = ReadProcessTable();
  std::map<pid_t, absl::Duration> times;
  for (const ProcessEntry& entry : table) times[entry.pid] = entry.cpu_time;
  std::set<pid_t> firsts;
  for (const PodExecutor::Running& container : *running) firsts.insert(container.pid);
  const std::map<pid_t, std::set<pid_t>> members = ByContainer(table, firsts);
  for (const PodExecutor::Running& container : *running) {
    const auto found = members.find(container.pid);
    if (found == members.end()) continue;
    absl::Duration& sum = sample.cpu_times[container.pid];
    for (const pid_t pid : found->second) sum += times[pid];
    if (usage == nullptr) continue;
    ContainerUsage& used = usage->containers.emplace_back();
    used.pod = {NamespaceOf(*container.pod), NameOf(*container.pod)};
    used.container = container.container;
    used.node = StringField(*container.pod, {"spec", "nodeName"});
    used.memory_bytes = HeldMemory(found->second);
    const auto before = last_.cpu_times.find(container.pid);
    const absl::Duration begun = before == last_.cpu_times.end() ? sum : before->second;
    used.processors = std::max(0.0, absl::FDivDuration(sum - begun, sample.time - last_.time));
  }
  return sample;
}

StatusOr<PodUsage> PodReach::Measure() {
  absl::MutexLock lock(&mutex_);
  WEFT_ASSIGN_OR_RETURN(std::vector<PodExecutor::Running> running, executor_->ListRunning(nullptr));
  const absl::Duration since = clock_->Now() - last_.time;
  const bool is_known = since <= kLongestWindow &&
                        std::all_of(running.begin(), running.end(), [&](const auto& container) {
                          return last_.cpu_times.count(container.pid) != 0;
                        });
  if (!is_known) last_ = TakeSample(&running, nullptr);
  const absl::Duration early = kShortestWindow - (clock_->Now() - last_.time);
  if (early > absl::ZeroDuration()) absl::SleepFor(early);
  PodUsage usage;
  Sample sample = TakeSample(&running, &usage);
  usage.time = sample.time;
  usage.window = sample.time - last_.time;
  last_ = std::move(sample);
  return usage;
}

}  // namespace weft::platform
