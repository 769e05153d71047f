// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/remote_calls.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"

#include "net/web_socket.h"
#include "platform/apiserver/container_choice.h"
#include "platform/apiserver/exec_channels.h"
#include "platform/apiserver/exec_session.h"
#include "platform/apiserver/object_requests.h"
#include "platform/apiserver/port_forward_session.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr size_t kMostCalls = 64;

Status BadCall(absl::string_view message) { return ApiError(400, "BadRequest", message); }

std::string RequestHeader(const ApiRequest& request, const std::string& name) {
  const auto found = request.http.headers.find(name);
  return found == request.http.headers.end() ? "" : found->second;
}

// A parameter may stand several times, as the words of a command do.
std::vector<std::string> ValuesOf(const ApiRequest& request, absl::string_view name) {
  std::vector<std::string> values;
  for (const absl::string_view part : absl::StrSplit(request.http.query, '&', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> pair = absl::StrSplit(part, absl::MaxSplits('=', 1));
    if (pair.first == name)
      values.push_back(DecodePercent(absl::StrReplaceAll(pair.second, {{"+", " "}})));
  }
  return values;
}

// The first of `known` that the client offers.
std::string Choose(const std::string& offered, const std::vector<std::string>& known) {
  std::set<std::string> names;
  for (const absl::string_view name : absl::StrSplit(offered, ','))
    names.emplace(absl::StripAsciiWhitespace(name));
  for (const std::string& name : known)
    if (names.count(name) != 0) return name;
  return "";
}

}  // namespace

struct RemoteCalls::Way {
  bool is_web_socket = false;
  std::string protocol;
  std::vector<std::pair<std::string, std::string>> headers;  // of the answer
};

RemoteCalls::RemoteCalls(PodLookup find_pod, PodAccess* pods)
    : find_pod_(std::move(find_pod)),
      pods_(pods),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

RemoteCalls::~RemoteCalls() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof(one));
  std::list<std::unique_ptr<Call>> calls;
  {
    absl::MutexLock lock(&mutex_);
    is_ending_ = true;
    calls.swap(calls_);
  }
}

void RemoteCalls::Answer(const ApiRequest& request, const std::shared_ptr<HttpReply>& reply) {
  const bool is_exec = request.path.subresource != "portforward";
  Way way;
  way.is_web_socket = absl::EqualsIgnoreCase(RequestHeader(request, "upgrade"), "websocket");
  const Status status = [&]() -> Status {
    if (pods_ == nullptr) return ApiError(501, "NotImplemented", "no pods run on this server");
    if (way.is_web_socket) {
      const std::vector<std::string> known =
          is_exec ? std::vector<std::string>{"v5.channel.k8s.io", "v4.channel.k8s.io"}
                  : std::vector<std::string>{"SPDY/3.1+portforward.k8s.io"};
      way.protocol = Choose(RequestHeader(request, "sec-websocket-protocol"), known);
      way.headers = {
          {"Upgrade", "websocket"},
          {"Sec-WebSocket-Accept", WebSocketAccept(RequestHeader(request, "sec-websocket-key"))},
          {"Sec-WebSocket-Protocol", way.protocol}};
    } else if (absl::EqualsIgnoreCase(RequestHeader(request, "upgrade"), "SPDY/3.1")) {
      const std::vector<std::string> known = is_exec
                                                 ? std::vector<std::string>{"v4.channel.k8s.io"}
                                                 : std::vector<std::string>{"portforward.k8s.io"};
      way.protocol = Choose(RequestHeader(request, "x-stream-protocol-version"), known);
      way.headers = {{"Upgrade", "SPDY/3.1"}, {"X-Stream-Protocol-Version", way.protocol}};
    } else {
      return BadCall("Upgrade request required");
    }
    if (way.protocol.empty())
      return ApiError(403, "Forbidden",
                      "none of the protocols that the client offers is spoken here");
    return is_exec ? AnswerExec(request, way, *reply) : AnswerPortForward(request, way, *reply);
  }();
  if (!status.ok()) reply->Send(ErrorResponse(status));
}

Status RemoteCalls::AnswerExec(const ApiRequest& request, const Way& way, HttpReply& reply) {
  PodProgram program;
  program.pod = {request.path.namespace_name, request.path.name};
  WEFT_ASSIGN_OR_RETURN(const ObjectPtr pod, find_pod_(program.pod));
  WEFT_ASSIGN_OR_RETURN(program.container, ChooseContainer(*pod, request.Query("container")));
  program.argv = ValuesOf(request, "command");
  program.takes_input = request.Flag("stdin");
  program.has_terminal = request.Flag("tty");
  const bool attaches = request.path.subresource == "attach";
  if (!attaches && (program.argv.empty() || program.argv[0].empty()))
    return BadCall("you must specify at least one command for the container");
  std::set<int> channels = {kExecStatus};
  if (program.takes_input) channels.insert(kExecInput);
  if (request.Flag("stdout")) channels.insert(kExecOutput);
  if (request.Flag("stderr") && !program.has_terminal) channels.insert(kExecError);
  if (program.has_terminal) channels.insert(kExecResize);
  if (channels.size() < 2) return BadCall("you must specify at least 1 of stdin, stdout, stderr");
  WEFT_ASSIGN_OR_RETURN(PodAccess::Start start,
                        attaches ? pods_->Attach(program) : pods_->Prepare(program));
  return Begin(
      way, reply,
      [start = std::move(start), channels = std::move(channels), is_web_socket = way.is_web_socket](
          UpgradedConnection* connection, int stop_fd) mutable {
        const auto wire = is_web_socket ? ExecOverWebSocket(connection)
                                        : ExecOverSpdy(connection, std::move(channels));
        RunExec(connection, wire.get(), std::move(start), stop_fd);
      });
}

Status RemoteCalls::AnswerPortForward(const ApiRequest& request, const Way& way, HttpReply& reply) {
  const ObjectName pod = {request.path.namespace_name, request.path.name};
  WEFT_RETURN_IF_ERROR(find_pod_(pod).status());
  return Begin(way, reply,
               [pods = pods_, pod, is_tunnel = way.is_web_socket](UpgradedConnection* connection,
                                                                  int stop_fd) {
                 RunPortForward(connection, is_tunnel, pods, pod, stop_fd);
               });
}

Status RemoteCalls::Begin(const Way& way, HttpReply& reply, Body body) {
  std::list<std::unique_ptr<Call>> over;  // joined without the lock
  {
    absl::MutexLock lock(&mutex_);
    for (auto call = calls_.begin(); call != calls_.end();) {
      const auto next = std::next(call);
      if ((*call)->is_over.load()) over.splice(over.end(), calls_, call);
      call = next;
    }
    if (calls_.size() >= kMostCalls) {
      return ApiError(429, "TooManyRequests",
                      absl::StrCat(kMostCalls, " programs and port-forwards are open: end some"));
    }
  }
  reply.Upgrade(way.headers, [this, body = std::move(body)](
                                 std::unique_ptr<UpgradedConnection> connection) mutable {
    Run(std::move(connection), std::move(body));
  });
  return absl::OkStatus();
}

void RemoteCalls::Run(std::unique_ptr<UpgradedConnection> connection, Body body) {
  absl::MutexLock lock(&mutex_);
  if (is_ending_) return;
  calls_.push_back(std::make_unique<Call>());
  Call* const call = calls_.back().get();
  call->thread = std::make_unique<Thread>(
      "remote", [this, call, connection = std::move(connection), body = std::move(body)]() mutable {
        body(connection.get(), stop_.get());
        connection.reset();
        call->is_over.store(true);
      });
}

}  // namespace weft::platform
