// SPDX-License-Identifier: Apache-2.0
#include "net/http_server.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"

#include "base/log.h"
#include "net/http_server_loop.h"

namespace weft {
namespace {

constexpr absl::Duration kLinger = absl::Seconds(1);

HttpResponse Plain(int status, absl::string_view text) {
  HttpResponse response;
  response.status = status;
  response.body = absl::StrCat(text, "\n");
  return response;
}

// The length that the head announces, or -1 when it cannot be read.
int64_t BodyLength(const HttpRequest& request) {
  const auto header = request.headers.find("content-length");
  if (header == request.headers.end()) return 0;
  int64_t length = 0;
  const bool is_number = std::all_of(header->second.begin(), header->second.end(), [](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c));
  });
  return is_number && absl::SimpleAtoi(header->second, &length) ? length : -1;
}

}  // namespace

HttpServerLoop::HttpServerLoop(HttpServer::Options options, HttpStreamHandler handler,
                               OwnedFd listener, std::shared_ptr<HttpMailbox> mailbox)
    : options_(std::move(options)),
      handler_(std::move(handler)),
      listener_(std::move(listener)),
      mailbox_(std::move(mailbox)),
      thread_("http", [this] { Run(); }) {}

HttpServerLoop::~HttpServerLoop() {
  stopping_.store(true);
  mailbox_->Wake();
  thread_.Join();
}

void HttpServerLoop::Run() {
  std::vector<pollfd> poll_fds;
  std::vector<uint64_t> ids;
  while (!stopping_.load()) {
    poll_fds.assign({{mailbox_->wake_fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}});
    ids.clear();
    for (const auto& [id, connection] : connections_) {
      poll_fds.push_back({connection.fd.get(), EventsOf(connection), 0});
      ids.push_back(id);
    }
    const int ready = ::poll(poll_fds.data(), poll_fds.size(), PollTimeoutMs());
    if (ready < 0 && errno != EINTR) {
      WEFT_LOG(ERROR) << ErrnoStatus(errno, "poll", "the HTTP sockets");
      break;
    }
    if (poll_fds[0].revents != 0) TakeMessages();
    const absl::Duration now = clock_.Monotonic();
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto found = connections_.find(ids[i]);
      if (found == connections_.end()) continue;
      const short events = poll_fds[i + 2].revents;
      const bool alive = events == 0 || Advance(ids[i], &found->second, events);
      if (!alive || found->second.deadline <= now) Drop(found);
    }
    if (poll_fds[1].revents != 0) Accept();
  }
  while (!connections_.empty()) Drop(connections_.begin());
}

void HttpServerLoop::Drop(Connections::iterator connection) {
  const std::shared_ptr<PendingReply> reply = std::move(connection->second.reply);
  if (connection->second.tls != nullptr) connection->second.tls->Close();
  connections_.erase(connection);
  if (reply != nullptr) reply->Close();
}

void HttpServerLoop::HandOver(Connections::iterator connection, HttpReply::TakeConnection take) {
  Connection& held = connection->second;
  auto upgraded = std::make_unique<UpgradedConnection>(
      std::move(held.fd), std::move(held.tls), std::move(held.in), held.out.substr(held.sent));
  const std::shared_ptr<PendingReply> reply = std::move(held.reply);
  connections_.erase(connection);
  if (reply != nullptr) reply->Close();
  take(std::move(upgraded));
}

short HttpServerLoop::EventsOf(const Connection& connection) const {
  // While one is answered the next request may come, but no more than that; the end of the client
  // is seen by reading.
  const bool is_full = connection.in.size() > options_.max_header_bytes + options_.max_body_bytes;
  const bool writes = !connection.out.empty() || connection.read_wants_write;
  return static_cast<short>((is_full ? 0 : POLLIN) | (writes ? POLLOUT : 0));
}

int HttpServerLoop::PollTimeoutMs() const {
  absl::Duration first = absl::Hours(1);
  const absl::Duration now = clock_.Monotonic();
  for (const auto& [id, connection] : connections_)
    first = std::min(first, connection.deadline - now);
  return static_cast<int>(std::max<int64_t>(0, absl::ToInt64Milliseconds(first) + 1));
}

void HttpServerLoop::Accept() {
  OwnedFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.is_open()) {
    // Out of descriptors: without a pause the loop would spin on the listener.
    if (errno == EMFILE || errno == ENFILE) ::usleep(10000);
    return;
  }
  if (connections_.size() >= static_cast<size_t>(options_.max_connections)) {
    const auto oldest = [&](auto is_so) {
      return std::find_if(connections_.begin(), connections_.end(),
                          [&](const auto& entry) { return is_so(entry.second); });
    };
    auto victim = oldest([](const Connection& connection) { return connection.is_idle(); });
    // What has not said all of its request for so long may never do so.
    if (victim == connections_.end())
      victim = oldest([](const Connection& connection) { return connection.reply == nullptr; });
    if (victim == connections_.end()) return;
    Drop(victim);
  }
  // Else an answer waits until the client has acknowledged what came before, which takes it 40 ms.
  const int one = 1;
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  Connection connection;
  if (options_.tls != nullptr) {
    StatusOr<std::unique_ptr<TlsSession>> session = options_.tls->Accept(fd.get());
    if (!session.ok()) return;
    connection.tls = *std::move(session);
  }
  connection.fd = std::move(fd);
  connection.deadline = clock_.Monotonic() + options_.request_timeout;
  connections_.emplace(next_id_++, std::move(connection));
}

void HttpServerLoop::TakeMessages() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t drained = ::read(mailbox_->wake_fd(), &count, sizeof(count));
  for (HttpMailbox::Message& message : mailbox_->Take()) {
    const auto found = connections_.find(message.connection);
    if (found == connections_.end()) continue;
    Connection& connection = found->second;
    const bool was_empty = connection.out.empty();
    connection.out.append(message.bytes);
    if (message.take) {
      HandOver(found, std::move(message.take));
      continue;
    }
    if (was_empty) connection.deadline = clock_.Monotonic() + options_.request_timeout;
    if (message.ends_reply && connection.reply != nullptr) {
      const std::shared_ptr<PendingReply> reply = std::exchange(connection.reply, nullptr);
      connection.close_after_reply = !reply->keep_alive();
      reply->Close();
    }
    if (message.breaks_off || !Write(message.connection, &connection)) Drop(found);
  }
}

bool HttpServerLoop::Advance(uint64_t id, Connection* connection, short events) {
  if ((events & (POLLERR | POLLNVAL)) != 0) return false;
  if ((events & POLLOUT) != 0 && !Write(id, connection)) return false;
  if ((events & (POLLIN | POLLHUP)) != 0 || connection->read_wants_write)
    return Read(id, connection);
  return true;
}

bool HttpServerLoop::Read(uint64_t id, Connection* connection) {
  char buffer[16 << 10];
  connection->read_wants_write = false;
  const bool was_empty = connection->in.empty();
  // TLS keeps what it has read of a record, of which poll knows nothing.
  while (connection->in.size() <= options_.max_header_bytes + options_.max_body_bytes) {
    const ssize_t count = connection->tls != nullptr
                              ? connection->tls->Read(buffer, sizeof(buffer))
                              : ::recv(connection->fd.get(), buffer, sizeof(buffer), 0);
    if (count == 0) return false;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      connection->read_wants_write = connection->tls != nullptr && connection->tls->wants_write();
      break;
    }
    if (count < 0) return false;
    if (!connection->discards) connection->in.append(buffer, static_cast<size_t>(count));
    if (connection->tls == nullptr) break;
  }
  if (was_empty && !connection->in.empty() && connection->reply == nullptr) {
    connection->deadline = clock_.Monotonic() + options_.request_timeout;
  }
  return HandleInput(id, connection);
}

bool HttpServerLoop::Refuse(uint64_t id, Connection* connection, int status,
                            absl::string_view text) {
  connection->reply =
      std::make_shared<PendingReply>(mailbox_, id, true, false, options_.max_unsent_bytes);
  connection->deadline = absl::InfiniteDuration();
  connection->discards = true;
  connection->in.clear();
  connection->reply->Send(options_.refusal ? options_.refusal(status, text) : Plain(status, text));
  return true;
}

bool HttpServerLoop::HandleInput(uint64_t id, Connection* connection) {
  if (connection->reply != nullptr || !connection->out.empty() || connection->discards) return true;
  const size_t end = connection->in.find("\r\n\r\n");
  if (std::min(end, connection->in.size()) > options_.max_header_bytes) {
    return Refuse(id, connection, 431, "The request is too long");
  }
  if (end == std::string::npos) return true;
  StatusOr<HttpRequest> request =
      ParseHttpRequest(absl::string_view(connection->in).substr(0, end + 2));
  if (!request.ok()) return Refuse(id, connection, 400, request.status().message());
  const int64_t length = BodyLength(*request);
  if (length < 0) return Refuse(id, connection, 400, "The Content-Length header holds no number");
  if (length > 0 && options_.max_body_bytes == 0) {
    return Refuse(id, connection, 400, "Requests with a body are not taken");
  }
  if (static_cast<uint64_t>(length) > options_.max_body_bytes) {
    return Refuse(id, connection, 413,
                  absl::StrCat("The body is too long: ", length, " bytes, at most ",
                               options_.max_body_bytes, " are taken"));
  }
  const size_t total = end + 4 + static_cast<size_t>(length);
  if (connection->in.size() < total) {
    const auto expect = request->headers.find("expect");
    if (expect != request->headers.end() && !connection->said_continue) {
      connection->said_continue = true;
      connection->out = "HTTP/1.1 100 Continue\r\n\r\n";
      return Write(id, connection);
    }
    return true;
  }
  request->body = connection->in.substr(end + 4, static_cast<size_t>(length));
  connection->in.erase(0, total);
  connection->said_continue = false;
  Dispatch(id, connection, *std::move(request));
  return true;
}

void HttpServerLoop::Dispatch(uint64_t id, Connection* connection, HttpRequest request) {
  const auto close = request.headers.find("connection");
  const bool keep_alive =
      close == request.headers.end() || !absl::EqualsIgnoreCase(close->second, "close");
  const auto reply = std::make_shared<PendingReply>(mailbox_, id, request.method != "HEAD",
                                                    keep_alive, options_.max_unsent_bytes);
  connection->reply = reply;
  // How long an answer takes to begin is the handler's affair.
  connection->deadline = absl::InfiniteDuration();
  if (!IsAllowedHost(request)) {
    reply->Send(Plain(403, "The Host header names no host that is served here"));
    return;
  }
  handler_(std::move(request),
           std::shared_ptr<HttpReply>(reply.get(), [reply](HttpReply*) { reply->Abandon(); }));
}

bool HttpServerLoop::Write(uint64_t id, Connection* connection) {
  while (connection->sent < connection->out.size()) {
    const char* const data = connection->out.data() + connection->sent;
    const size_t size = connection->out.size() - connection->sent;
    const ssize_t count = connection->tls != nullptr
                              ? connection->tls->Write(data, size)
                              : ::send(connection->fd.get(), data, size, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return true;
    if (count <= 0) return false;
    connection->sent += static_cast<size_t>(count);
    if (connection->reply != nullptr) {
      connection->reply->Sent(static_cast<size_t>(count));
      connection->deadline = clock_.Monotonic() + options_.request_timeout;
    }
  }
  connection->out.clear();
  connection->sent = 0;
  if (connection->reply != nullptr) {
    connection->deadline = absl::InfiniteDuration();
    return true;
  }
  if (connection->close_after_reply) {
    if (!connection->discards) return false;
    if (connection->tls != nullptr) connection->tls->Close();
    ::shutdown(connection->fd.get(), SHUT_WR);
    connection->deadline = clock_.Monotonic() + kLinger;
    return true;
  }
  connection->deadline = clock_.Monotonic() + (connection->in.empty() ? options_.idle_timeout
                                                                      : options_.request_timeout);
  // A client may have sent its next request already.
  return connection->in.empty() || HandleInput(id, connection);
}

bool HttpServerLoop::IsAllowedHost(const HttpRequest& request) const {
  const auto header = request.headers.find("host");
  if (header == request.headers.end()) return false;
  std::string host = header->second;
  const size_t bracket = host.find(']');
  if (absl::StartsWith(host, "[") && bracket != std::string::npos) {
    host = host.substr(1, bracket - 1);
  } else {
    host = host.substr(0, host.find(':'));
  }
  // No page of others is at an address of this machine, whichever of 127.0.0.0/8.
  const bool is_loopback = IsLoopbackHost(host);
  return std::any_of(options_.allowed_hosts.begin(), options_.allowed_hosts.end(),
                     [&](const std::string& allowed) {
                       return allowed == "*" || absl::EqualsIgnoreCase(allowed, host) ||
                              (is_loopback && allowed == "127.0.0.1");
                     });
}

HttpServer::HttpServer(int port) : port_(port) {}
HttpServer::~HttpServer() = default;

StatusOr<std::unique_ptr<HttpServer>> HttpServer::StartWithHandler(Options options,
                                                                   HttpStreamHandler handler) {
  WEFT_ASSIGN_OR_RETURN(OwnedFd listener, ListenTcp(options.address));
  WEFT_ASSIGN_OR_RETURN(const int port, LocalPort(listener.get()));
  OwnedFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.is_open()) return ErrnoStatus(errno, "make", "an eventfd");
  std::unique_ptr<HttpServer> server(new HttpServer(port));
  server->loop_ =
      std::make_unique<HttpServerLoop>(std::move(options), std::move(handler), std::move(listener),
                                       std::make_shared<HttpMailbox>(std::move(wake)));
  return server;
}

StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options,
                                                        std::map<std::string, HttpHandler> routes) {
  return StartWithHandler(std::move(options),
                          [routes = std::move(routes)](const HttpRequest& request,
                                                       const std::shared_ptr<HttpReply>& reply) {
                            if (request.method != "GET" && request.method != "HEAD") {
                              return reply->Send(Plain(405, "Only GET and HEAD are served here"));
                            }
                            const auto route = routes.find(request.path);
                            if (route != routes.end()) return reply->Send(route->second(request));
                            std::string text = "There is no such page here. There are:";
                            for (const auto& [path, handler] : routes)
                              absl::StrAppend(&text, " ", path);
                            reply->Send(Plain(404, text));
                          });
}

}  // namespace weft
