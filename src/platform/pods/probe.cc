// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/probe.h"

#include <algorithm>
#include <cerrno>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

#include "base/posix_file.h"
#include "net/http_client.h"
#include "platform/object/fields.h"
#include "platform/pods/health_call.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(100);

// A number, or the name of one of the container's ports.
int PortOf(const Json& container, const Json& action) {
  const Json* const port = action.Find("port");
  if (port == nullptr) return 0;
  if (port->is_int()) return static_cast<int>(port->AsInt().value_or(0));
  if (const Json* const ports = FindField(container, {"ports"})) {
    for (const Json& known : ports->items()) {
      if (known.Find("name") != nullptr && *known.Find("name") == *port) {
        return static_cast<int>(IntField(known, {"containerPort"}));
      }
    }
  }
  return 0;
}

void DropOutput(Subprocess& process) {
  char buffer[4096];
  for (const int fd : {process.stdout_pipe().get(), process.stderr_pipe().get()}) {
    while (fd >= 0 && ::read(fd, buffer, sizeof(buffer)) > 0) {
    }
  }
}

Status TryProgram(const ProbeSpec& spec, const ContainerCommand& command, ProcessGuard* guard) {
  SpawnOptions options;
  options.argv = spec.argv;
  options.environment = command.environment;
  options.working_directory = command.working_directory;
  options.mounts = command.mounts.get();
  options.owner = command.owner;
  options.capture_output = true;
  options.guard = guard;
  WEFT_ASSIGN_OR_RETURN(auto process, Subprocess::Spawn(options));
  const absl::Time deadline = absl::Now() + spec.timeout;
  StatusOr<ExitState> exit = DeadlineExceeded("It was not waited for");
  do {
    exit = process->Wait(std::clamp(deadline - absl::Now(), absl::ZeroDuration(), kLook));
    // Nobody wants to know, but a full pipe would hold it up.
    DropOutput(*process);
  } while (!exit.ok() && absl::Now() < deadline &&
           (spec.is_unwanted == nullptr || !spec.is_unwanted->load()));
  if (!exit.ok()) {
    return DeadlineExceeded(spec.argv[0], " has not ended after ",
                            absl::FormatDuration(spec.timeout));
  }
  return exit->ok() ? absl::OkStatus() : Unavailable(DescribeExit(*exit));
}

Status TryConnection(const ProbeSpec& spec) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(spec.port));
  const std::string host = spec.host == "localhost" ? "127.0.0.1" : spec.host;
  if (::inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1) {
    return InvalidArgument("A tcpSocket probe takes an address, found ", spec.host);
  }
  const OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return ErrnoStatus(errno, "make", "a socket");
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) {
    return absl::OkStatus();
  }
  if (errno != EINPROGRESS)
    return ErrnoStatus(errno, "connect to", absl::StrCat(host, ":", spec.port));
  pollfd poll_fd = {fd.get(), POLLOUT, 0};
  if (::poll(&poll_fd, 1, static_cast<int>(absl::ToInt64Milliseconds(spec.timeout))) == 0) {
    return DeadlineExceeded("No connection to ", host, ":", spec.port);
  }
  int error = 0;
  socklen_t size = sizeof(error);
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  if (error == 0) return absl::OkStatus();
  return ErrnoStatus(error, "connect to", absl::StrCat(host, ":", spec.port));
}

Status TryServer(const ProbeSpec& spec) {
  HttpCall call;
  call.path = spec.path.empty() ? "/" : spec.path;
  call.headers = spec.headers;
  call.timeout = spec.timeout;
  TlsClientOptions tls;
  tls.skip_verification = true;  // as a kubelet
  WEFT_ASSIGN_OR_RETURN(
      const auto client,
      HttpClient::Create(
          absl::StrCat(spec.is_tls ? "https" : "http", "://", spec.host, ":", spec.port), tls));
  WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, client->Send(call));
  if (answer.status >= 200 && answer.status < 400) return absl::OkStatus();
  return Unavailable("HTTP probe failed with statuscode: ", answer.status);
}

}  // namespace

std::optional<ProbeSpec> ReadProbe(const Json& container, const char* name) {
  const Json* const probe = FindField(container, {name});
  if (probe == nullptr) return std::nullopt;
  ProbeSpec spec;
  spec.initial_delay = absl::Seconds(IntField(*probe, {"initialDelaySeconds"}));
  spec.period = absl::Seconds(std::max<int64_t>(1, IntField(*probe, {"periodSeconds"}, 10)));
  spec.timeout = absl::Seconds(std::max<int64_t>(1, IntField(*probe, {"timeoutSeconds"}, 1)));
  spec.success_threshold = std::max<int64_t>(1, IntField(*probe, {"successThreshold"}, 1));
  spec.failure_threshold = std::max<int64_t>(1, IntField(*probe, {"failureThreshold"}, 3));
  std::optional<ProbeSpec> action = ReadAction(container, *probe);
  if (!action.has_value()) return std::nullopt;
  action->initial_delay = spec.initial_delay;
  action->period = spec.period;
  action->timeout = spec.timeout;
  action->success_threshold = spec.success_threshold;
  action->failure_threshold = spec.failure_threshold;
  return action;
}

std::optional<ProbeSpec> ReadAction(const Json& container, const Json& written) {
  ProbeSpec spec;
  if (const Json* const words = FindField(written, {"exec", "command"})) {
    for (const Json& word : words->items()) spec.argv.push_back(word.AsString().value_or(""));
    if (spec.argv.empty()) return std::nullopt;
    return spec;
  }
  if (const Json* const action = FindField(written, {"grpc"})) {
    spec.is_grpc = true;
    spec.port = PortOf(container, *action);
    spec.service = StringField(*action, {"service"});
    return spec;
  }
  for (const char* kind : {"httpGet", "tcpSocket"}) {
    const Json* const action = FindField(written, {kind});
    if (action == nullptr) continue;
    if (const std::string host = StringField(*action, {"host"}); !host.empty()) spec.host = host;
    spec.port = PortOf(container, *action);
    if (std::string(kind) == "tcpSocket") return spec;
    spec.path = StringField(*action, {"path"});
    if (spec.path.empty()) spec.path = "/";
    spec.is_tls = StringField(*action, {"scheme"}) == "HTTPS";
    if (const Json* const headers = FindField(*action, {"httpHeaders"})) {
      for (const Json& header : headers->items()) {
        spec.headers.emplace_back(StringField(header, {"name"}), StringField(header, {"value"}));
      }
    }
    return spec;
  }
  return std::nullopt;
}

Status TryProbe(const ProbeSpec& written, const ContainerCommand& command, ProcessGuard* guard) {
  ProbeSpec spec = written;
  if (!command.address.empty() && spec.host == kLoopbackHost) spec.host = command.address;
  if (!spec.argv.empty()) return TryProgram(spec, command, guard);
  if (spec.is_grpc)
    return CallHealth(absl::StrCat(spec.host, ":", spec.port), spec.service, spec.timeout);
  return spec.path.empty() ? TryConnection(spec) : TryServer(spec);
}

Probe::Probe(ProbeSpec spec, absl::Time started, bool is_good_at_first)
    : spec_(std::move(spec)), due_(started + spec_.initial_delay), is_good_(is_good_at_first) {}

void Probe::Step(const ContainerCommand& command, ProcessGuard* guard, ThreadPool* pool,
                 absl::Time now) {
  if (running_ != nullptr) {
    std::optional<Status> status;
    {
      absl::MutexLock lock(&running_->mutex);
      status = running_->status;
    }
    if (!status.has_value()) return;
    running_ = nullptr;
    successes_ = status->ok() ? successes_ + 1 : 0;
    failures_ = status->ok() ? 0 : failures_ + 1;
    if (!status->ok()) why_ = std::string(status->message());
    if (successes_ >= spec_.success_threshold) is_good_ = true;
    if (has_failed()) is_good_ = false;
  }
  if (now < due_ || pool == nullptr) return;
  due_ = now + spec_.period;
  running_ = std::make_shared<Result>();
  pool->Schedule([spec = spec_, command, guard, result = running_] {
    Status status = TryProbe(spec, command, guard);
    absl::MutexLock lock(&result->mutex);
    result->status = std::move(status);
  });
}

}  // namespace weft::platform
