// SPDX-License-Identifier: Apache-2.0
#include "net/http_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/threads.h"

namespace weft {
namespace {

absl::string_view Reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    default:
      return status < 400 ? "OK" : "Error";
  }
}

std::string Serialize(const HttpResponse& response, bool with_body, bool keep_alive) {
  return absl::StrCat("HTTP/1.1 ", response.status, " ", Reason(response.status),
                      "\r\nContent-Type: ", response.content_type,
                      "\r\nContent-Length: ", response.body.size(),
                      "\r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: ",
                      keep_alive ? "keep-alive" : "close", "\r\n\r\n",
                      with_body ? absl::string_view(response.body) : "");
}

HttpResponse Plain(int status, absl::string_view text) {
  HttpResponse response;
  response.status = status;
  response.body = absl::StrCat(text, "\n");
  return response;
}

}  // namespace

// All state is the thread's own; the eventfd is how others reach it.
class HttpServer::Loop {
 public:
  Loop(Options options, std::map<std::string, HttpHandler> routes, OwnedFd listener, OwnedFd wake)
      : options_(std::move(options)),
        routes_(std::move(routes)),
        listener_(std::move(listener)),
        wake_(std::move(wake)),
        thread_("http", [this] { Run(); }) {}
  ~Loop() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof(one));
    thread_.Join();
  }

 private:
  struct Connection {
    OwnedFd fd;
    std::string in;
    std::string out;
    bool close_after_out = false;
    absl::Duration deadline;
    bool is_idle() const { return in.empty() && out.empty(); }
  };

  void Run();
  void Accept();
  // False: the connection is done.
  bool Advance(Connection* connection, short events);
  bool Read(Connection* connection);
  bool Write(Connection* connection);
  void AnswerComplete(Connection* connection);
  void Reply(Connection* connection, const HttpResponse& response, bool with_body, bool keep_alive);
  HttpResponse Handle(const HttpRequest& request) const;
  bool IsAllowedHost(const HttpRequest& request) const;
  int PollTimeoutMs() const;

  const Options options_;
  const std::map<std::string, HttpHandler> routes_;
  const OwnedFd listener_;
  const OwnedFd wake_;
  const RealClock clock_;
  std::list<Connection> connections_;
  Thread thread_;  // last: it uses all of the above
};

void HttpServer::Loop::Run() {
  std::vector<pollfd> poll_fds;
  while (true) {
    poll_fds.assign({{wake_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}});
    for (const Connection& connection : connections_) {
      poll_fds.push_back(
          {connection.fd.get(), static_cast<short>(connection.out.empty() ? POLLIN : POLLOUT), 0});
    }
    const int ready = ::poll(poll_fds.data(), poll_fds.size(), PollTimeoutMs());
    if (ready < 0 && errno != EINTR) {
      WEFT_LOG(ERROR) << ErrnoStatus(errno, "poll", "the HTTP sockets");
      return;
    }
    if (poll_fds[0].revents != 0) return;
    size_t index = 2;
    const absl::Duration now = clock_.Monotonic();
    for (auto connection = connections_.begin(); connection != connections_.end(); ++index) {
      const short events = poll_fds[index].revents;
      const bool alive = (events == 0 || Advance(&*connection, events)) && connection->deadline > now;
      connection = alive ? std::next(connection) : connections_.erase(connection);
    }
    if (poll_fds[1].revents != 0) Accept();
  }
}

int HttpServer::Loop::PollTimeoutMs() const {
  absl::Duration first = absl::Hours(1);
  const absl::Duration now = clock_.Monotonic();
  for (const Connection& connection : connections_) {
    first = std::min(first, connection.deadline - now);
  }
  return static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(first) + 1));
}

void HttpServer::Loop::Accept() {
  OwnedFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.is_open()) {
    // Out of descriptors: without a pause the loop would spin on the listener.
    if (errno == EMFILE || errno == ENFILE) ::usleep(10000);
    return;
  }
  if (connections_.size() >= static_cast<size_t>(options_.max_connections)) {
    const auto idle = std::find_if(connections_.begin(), connections_.end(),
                                   [](const Connection& c) { return c.is_idle(); });
    if (idle == connections_.end()) return;
    connections_.erase(idle);
  }
  Connection connection;
  connection.fd = std::move(fd);
  connection.deadline = clock_.Monotonic() + options_.request_timeout;
  connections_.push_back(std::move(connection));
}

bool HttpServer::Loop::Advance(Connection* connection, short events) {
  if ((events & (POLLERR | POLLNVAL)) != 0) return false;
  return connection->out.empty() ? Read(connection) : Write(connection);
}

bool HttpServer::Loop::Read(Connection* connection) {
  char buffer[4096];
  const ssize_t count = ::recv(connection->fd.get(), buffer, sizeof(buffer), 0);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) return false;
  if (connection->in.empty()) {
    connection->deadline = clock_.Monotonic() + options_.request_timeout;
  }
  connection->in.append(buffer, static_cast<size_t>(count));
  AnswerComplete(connection);
  return connection->out.empty() || Write(connection);
}

void HttpServer::Loop::AnswerComplete(Connection* connection) {
  const size_t end = connection->in.find("\r\n\r\n");
  if (std::min(end, connection->in.size()) > options_.max_header_bytes) {
    Reply(connection, Plain(431, "The request is too long"), true, false);
    return;
  }
  if (end == std::string::npos) return;
  const StatusOr<HttpRequest> request =
      ParseHttpRequest(absl::string_view(connection->in).substr(0, end + 2));
  connection->in.erase(0, end + 4);
  if (!request.ok()) {
    Reply(connection, Plain(400, request.status().message()), true, false);
    return;
  }
  const auto close = request->headers.find("connection");
  const bool keep_alive =
      close == request->headers.end() || !absl::EqualsIgnoreCase(close->second, "close");
  Reply(connection, Handle(*request), request->method != "HEAD", keep_alive);
}

void HttpServer::Loop::Reply(Connection* connection, const HttpResponse& response, bool with_body,
                             bool keep_alive) {
  connection->out = Serialize(response, with_body, keep_alive);
  connection->close_after_out = !keep_alive;
  connection->deadline = clock_.Monotonic() + options_.request_timeout;
}

bool HttpServer::Loop::Write(Connection* connection) {
  const ssize_t count = ::send(connection->fd.get(), connection->out.data(), connection->out.size(),
                               MSG_NOSIGNAL);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  connection->out.erase(0, static_cast<size_t>(count));
  if (!connection->out.empty()) return true;
  if (connection->close_after_out) return false;
  connection->deadline = clock_.Monotonic() + options_.idle_timeout;
  // A client may have sent its next request already.
  if (!connection->in.empty()) AnswerComplete(connection);
  return true;
}

bool HttpServer::Loop::IsAllowedHost(const HttpRequest& request) const {
  const auto header = request.headers.find("host");
  if (header == request.headers.end()) return false;
  std::string host = header->second;
  const size_t bracket = host.find(']');
  if (absl::StartsWith(host, "[") && bracket != std::string::npos) {
    host = host.substr(1, bracket - 1);
  } else {
    host = host.substr(0, host.find(':'));
  }
  return std::any_of(options_.allowed_hosts.begin(), options_.allowed_hosts.end(),
                     [&](const std::string& allowed) { return absl::EqualsIgnoreCase(allowed, host); });
}

HttpResponse HttpServer::Loop::Handle(const HttpRequest& request) const {
  if (!IsAllowedHost(request)) {
    return Plain(403, "The Host header names no host that is served here");
  }
  if (request.method != "GET" && request.method != "HEAD") {
    return Plain(405, "Only GET and HEAD are served here");
  }
  const auto route = routes_.find(request.path);
  if (route == routes_.end()) {
    std::string text = "There is no such page here. There are:";
    for (const auto& [path, handler] : routes_) absl::StrAppend(&text, " ", path);
    return Plain(404, text);
  }
  return route->second(request);
}

HttpServer::HttpServer(int port) : port_(port) {}
HttpServer::~HttpServer() = default;

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options,
                                                        std::map<std::string, HttpHandler> routes) {
  WEFT_ASSIGN_OR_RETURN(OwnedFd listener, ListenTcp(options.address));
  WEFT_ASSIGN_OR_RETURN(const int port, LocalPort(listener.get()));
  OwnedFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake.is_open()) return ErrnoStatus(errno, "make", "an eventfd");
  std::unique_ptr<HttpServer> server(new HttpServer(port));
  server->loop_ = std::make_unique<Loop>(std::move(options), std::move(routes), std::move(listener),
                                         std::move(wake));
  return server;
}

}  // namespace weft
