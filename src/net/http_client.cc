// SPDX-License-Identifier: Apache-2.0
#include "net/http_client.h"

#include <algorithm>
#include <cerrno>

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "base/clock.h"
#include "base/poll_timeout.h"
#include "base/posix_file.h"
#include "net/socket_address.h"

namespace weft {
namespace {

constexpr size_t kMostHeaderBytes = 64 << 10;
constexpr size_t kMostBodyBytes = size_t{256} << 20;
// A call that finds none pays for a handshake.
constexpr size_t kMostIdle = 64;

// Ends waits of a call when it is cancelled or too late.
class CallGuard {
 public:
  explicit CallGuard(const HttpCall& call)
      : cancellation_(call.cancellation),
        wake_(call.cancellation == nullptr ? -1 : ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        deadline_(clock_.Monotonic() + call.timeout) {
    if (cancellation_ == nullptr) return;
    registered_ = cancellation_->Register(&token_, [fd = wake_.get()](const Status&) {
      const uint64_t one = 1;
      [[maybe_unused]] const ssize_t written = ::write(fd, &one, sizeof(one));
    });
  }
  ~CallGuard() {
    if (registered_) cancellation_->Deregister(token_);
  }

  void set_timeout(absl::Duration timeout) { deadline_ = clock_.Monotonic() + timeout; }

  // Until the socket is ready for `events`.
  Status Wait(int fd, short events) const {
    while (true) {
      if (cancellation_ != nullptr && cancellation_->IsCancelled()) return cancellation_->status();
      const absl::Duration left = deadline_ - clock_.Monotonic();
      if (left <= absl::ZeroDuration())
        return DeadlineExceeded("The server did not answer in time");
      pollfd poll_fds[2] = {{fd, events, 0}, {wake_.get(), POLLIN, 0}};
      const int ready = ::poll(poll_fds, wake_.is_open() ? 2 : 1, PollTimeoutMs(left));
      if (ready > 0 && poll_fds[0].revents != 0) return absl::OkStatus();
    }
  }

 private:
  const RealClock clock_;
  Cancellation* const cancellation_;
  const OwnedFd wake_;
  absl::Duration deadline_;
  Cancellation::Token token_ = 0;
  bool registered_ = false;
};

StatusOr<OwnedFd> ConnectTcp(const HttpUrl& url, const CallGuard& guard) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(url.host.c_str(), absl::StrCat(url.port).c_str(), &hints, &found);
  if (code != 0)
    return Unavailable("Cannot find the host '", url.host, "': ", ::gai_strerror(code));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  Status last = Unavailable("The host has no address: ", url.host);
  for (const addrinfo* at = found; at != nullptr; at = at->ai_next) {
    OwnedFd fd(::socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!fd.is_open()) return ErrnoStatus(errno, "make", "a socket");
    int error = ::connect(fd.get(), at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      WEFT_RETURN_IF_ERROR(guard.Wait(fd.get(), POLLOUT));
      socklen_t size = sizeof(error);
      ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error == 0) {
      const int on = 1;
      ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      ::setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
      return fd;
    }
    last = Unavailable("Cannot reach ", SocketAddress{url.host, url.port}.ToString(), ": ",
                       ErrnoStatus(error, "connect to", url.host).message());
  }
  return last;
}

Status ParseAnswerHead(absl::string_view head, HttpAnswer* answer) {
  const std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  const std::vector<absl::string_view> start = absl::StrSplit(lines[0], absl::MaxSplits(' ', 2));
  if (start.size() < 2 || !absl::StartsWith(start[0], "HTTP/1.") ||
      !absl::SimpleAtoi(start[1], &answer->status)) {
    return Unavailable("The server does not speak HTTP/1.1; it began with: ",
                       lines[0].substr(0, 60));
  }
  answer->headers.clear();
  for (size_t i = 1; i < lines.size(); ++i) {
    const size_t colon = lines[i].find(':');
    if (colon == absl::string_view::npos) continue;
    answer->headers[absl::AsciiStrToLower(lines[i].substr(0, colon))] =
        std::string(absl::StripAsciiWhitespace(lines[i].substr(colon + 1)));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<HttpUrl> ParseHttpUrl(absl::string_view url) {
  HttpUrl parsed;
  absl::string_view rest = url;
  if (absl::ConsumePrefix(&rest, "http://")) {
    parsed.is_tls = false;
    parsed.port = 80;
  } else if (!absl::ConsumePrefix(&rest, "https://")) {
    return InvalidArgument("A URL of a server begins with https:// or http://: '", url, "'");
  }
  const size_t slash = rest.find('/');
  if (slash != absl::string_view::npos) {
    parsed.path = std::string(absl::StripSuffix(rest.substr(slash), "/"));
    rest = rest.substr(0, slash);
  }
  const size_t colon = rest.rfind(':');
  const bool has_port =
      colon != absl::string_view::npos && !absl::StrContains(rest.substr(colon), "]");
  if (has_port) {
    WEFT_ASSIGN_OR_RETURN(const SocketAddress address, ParseSocketAddress(rest));
    parsed.host = address.host;
    parsed.port = address.port;
  } else {
    parsed.host = std::string(absl::StripSuffix(absl::StripPrefix(rest, "["), "]"));
  }
  if (parsed.host.empty()) return InvalidArgument("There is no host in the URL '", url, "'");
  return parsed;
}

// One socket and what has been read of it.
class HttpClient::Connection {
 public:
  static StatusOr<std::unique_ptr<Connection>> Open(const HttpUrl& url, const TlsConfig* tls,
                                                    const CallGuard& guard) {
    auto connection = std::make_unique<Connection>();
    WEFT_ASSIGN_OR_RETURN(connection->fd_, ConnectTcp(url, guard));
    if (tls != nullptr) {
      WEFT_ASSIGN_OR_RETURN(connection->tls_, tls->Connect(connection->fd_.get(), url.host));
    }
    return connection;
  }

  // Nothing has come and nothing ended since its last answer.
  bool IsFresh() const {
    pollfd poll_fd = {fd_.get(), POLLIN, 0};
    return in_.empty() && ::poll(&poll_fd, 1, 0) == 0;
  }

  Status Write(absl::string_view data, const CallGuard& guard) {
    while (!data.empty()) {
      const ssize_t count = tls_ != nullptr
                                ? tls_->Write(data.data(), data.size())
                                : ::send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL);
      if (count > 0) {
        data.remove_prefix(static_cast<size_t>(count));
      } else if (count < 0 && errno == EAGAIN) {
        WEFT_RETURN_IF_ERROR(
            guard.Wait(fd_.get(), tls_ != nullptr && !tls_->wants_write() ? POLLIN : POLLOUT));
      } else if (count == 0 || errno != EINTR) {
        return Broken();
      }
    }
    return absl::OkStatus();
  }

  // OutOfRange at the end of the stream.
  Status ReadMore(const CallGuard& guard) {
    char buffer[16 << 10];
    while (true) {
      const ssize_t count = tls_ != nullptr ? tls_->Read(buffer, sizeof(buffer))
                                            : ::recv(fd_.get(), buffer, sizeof(buffer), 0);
      if (count > 0) {
        in_.append(buffer, static_cast<size_t>(count));
        return absl::OkStatus();
      }
      if (count == 0) return OutOfRange("The server closed the connection");
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return Broken();
      WEFT_RETURN_IF_ERROR(
          guard.Wait(fd_.get(), tls_ != nullptr && tls_->wants_write() ? POLLOUT : POLLIN));
    }
  }

  Status ReadHead(const CallGuard& guard, HttpAnswer* answer) {
    while (true) {
      const size_t end = in_.find("\r\n\r\n");
      if (end != std::string::npos) {
        WEFT_RETURN_IF_ERROR(ParseAnswerHead(absl::string_view(in_).substr(0, end), answer));
        in_.erase(0, end + 4);
        if (answer->status != 100) return absl::OkStatus();
        continue;
      }
      if (in_.size() > kMostHeaderBytes)
        return Unavailable("The server's answer has an endless head");
      WEFT_RETURN_IF_ERROR(EndIsError(ReadMore(guard)));
    }
  }

  // Calls `take` with the body's pieces; `guard` is given `idle_timeout` anew with each when that
  // is finite.
  Status ReadBody(const HttpAnswer& answer, bool has_body, CallGuard* guard,
                  absl::Duration idle_timeout, const Sink& take) {
    if (!has_body || answer.status == 204 || answer.status == 304) return absl::OkStatus();
    const auto encoding = answer.headers.find("transfer-encoding");
    if (encoding != answer.headers.end() && absl::EqualsIgnoreCase(encoding->second, "chunked")) {
      return ReadChunks(guard, idle_timeout, take);
    }
    const auto header = answer.headers.find("content-length");
    uint64_t length = UINT64_MAX;
    if (header != answer.headers.end() && !absl::SimpleAtoi(header->second, &length)) {
      return Unavailable("The server's Content-Length is no number: ", header->second);
    }
    while (length > 0) {
      if (in_.empty()) {
        const Status status = ReadMore(*guard);
        if (absl::IsOutOfRange(status) && length == UINT64_MAX) return absl::OkStatus();
        WEFT_RETURN_IF_ERROR(EndIsError(status));
      }
      const size_t count = std::min<uint64_t>(in_.size(), length);
      const std::string piece = in_.substr(0, count);
      in_.erase(0, count);
      if (length != UINT64_MAX) length -= count;
      WEFT_RETURN_IF_ERROR(take(piece));
    }
    return absl::OkStatus();
  }

 private:
  Status ReadChunks(CallGuard* guard, absl::Duration idle_timeout, const Sink& take) {
    while (true) {
      WEFT_ASSIGN_OR_RETURN(const std::string line, ReadLine(guard, idle_timeout));
      uint64_t size = 0;
      const absl::string_view digits = absl::string_view(line).substr(0, line.find(';'));
      if (digits.empty() || digits.size() > 8 || !absl::SimpleHexAtoi(digits, &size)) {
        return Unavailable("The server sent a malformed chunk");
      }
      while (in_.size() < size + 2) WEFT_RETURN_IF_ERROR(Refill(guard, idle_timeout));
      const std::string piece = in_.substr(0, size);
      in_.erase(0, size + 2);
      if (size == 0) return absl::OkStatus();
      WEFT_RETURN_IF_ERROR(take(piece));
    }
  }

  StatusOr<std::string> ReadLine(CallGuard* guard, absl::Duration idle_timeout) {
    size_t end = 0;
    while ((end = in_.find("\r\n")) == std::string::npos) {
      if (in_.size() > kMostHeaderBytes) return Unavailable("The server sent a malformed chunk");
      WEFT_RETURN_IF_ERROR(Refill(guard, idle_timeout));
    }
    std::string line = in_.substr(0, end);
    in_.erase(0, end + 2);
    return line;
  }

  Status Refill(CallGuard* guard, absl::Duration idle_timeout) {
    if (idle_timeout != absl::ZeroDuration()) guard->set_timeout(idle_timeout);
    return EndIsError(ReadMore(*guard));
  }

  static Status EndIsError(const Status& status) {
    return absl::IsOutOfRange(status)
               ? Unavailable("The server closed the connection before it had answered")
               : status;
  }

  Status Broken() const {
    const int error = errno;
    if (tls_ != nullptr && error == EPROTO) {
      return absl::UnauthenticatedError(absl::StrCat("TLS failed: ", tls_->error()));
    }
    return Unavailable("The connection broke: ", ErrnoStatus(error, "use", "the socket").message());
  }

  OwnedFd fd_;
  std::unique_ptr<TlsSession> tls_;
  std::string in_;
};

HttpClient::HttpClient(HttpUrl url, std::shared_ptr<TlsConfig> tls)
    : url_(std::move(url)), tls_(std::move(tls)) {}
HttpClient::~HttpClient() = default;

StatusOr<std::unique_ptr<HttpClient>> HttpClient::Create(const std::string& url,
                                                         const TlsClientOptions& tls) {
  WEFT_ASSIGN_OR_RETURN(HttpUrl parsed, ParseHttpUrl(url));
  std::shared_ptr<TlsConfig> config;
  if (parsed.is_tls) {
    WEFT_ASSIGN_OR_RETURN(config, TlsConfig::Client(tls));
  }
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(parsed), std::move(config)));
}

std::unique_ptr<HttpClient::Connection> HttpClient::TakeIdle() {
  absl::MutexLock lock(&mutex_);
  while (!idle_.empty()) {
    std::unique_ptr<Connection> connection = std::move(idle_.back());
    idle_.pop_back();
    if (connection->IsFresh()) return connection;
  }
  return nullptr;
}

StatusOr<HttpAnswer> HttpClient::Exchange(const HttpCall& call, const Sink* sink) {
  CallGuard guard(call);
  std::unique_ptr<Connection> connection = TakeIdle();
  if (connection == nullptr) {
    WEFT_ASSIGN_OR_RETURN(connection, Connection::Open(url_, tls_.get(), guard));
  }
  std::string text =
      absl::StrCat(call.method, " ", url_.path, call.path,
                   " HTTP/1.1\r\nHost: ", SocketAddress{url_.host, url_.port}.ToString(), "\r\n");
  for (const auto& [name, value] : call.headers) absl::StrAppend(&text, name, ": ", value, "\r\n");
  if (!call.body.empty() || call.method != "GET") {
    absl::StrAppend(&text, "Content-Length: ", call.body.size(), "\r\n");
  }
  absl::StrAppend(&text, "\r\n", call.body);
  HttpAnswer answer;
  const Status written = connection->Write(text, guard);
  const Status read = connection->ReadHead(guard, &answer);
  // A server that refuses a call may have stopped reading before its end.
  if (!read.ok()) return written.ok() ? read : written;
  const bool streams = sink != nullptr && answer.status / 100 == 2;
  if (streams) guard.set_timeout(call.idle_timeout);
  const Sink collect = [&](absl::string_view piece) {
    if (answer.body.size() + piece.size() > kMostBodyBytes)
      return ResourceExhausted("The server's answer is too long");
    answer.body.append(piece.data(), piece.size());
    return absl::OkStatus();
  };
  WEFT_RETURN_IF_ERROR(connection->ReadBody(answer, call.method != "HEAD", &guard,
                                            streams ? call.idle_timeout : absl::ZeroDuration(),
                                            streams ? *sink : collect));
  const auto close = answer.headers.find("connection");
  if (close != answer.headers.end() && absl::EqualsIgnoreCase(close->second, "close"))
    return answer;
  absl::MutexLock lock(&mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(connection));
  return answer;
}

StatusOr<HttpAnswer> HttpClient::Send(const HttpCall& call) { return Exchange(call, nullptr); }

StatusOr<HttpAnswer> HttpClient::Stream(const HttpCall& call, const Sink& sink) {
  return Exchange(call, &sink);
}

}  // namespace weft
