// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 server: with fixed routes for /healthz, /metrics and their kind, or with one handler
// that answers when it likes, in a stream if it likes, over TLS.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "base/status.h"
#include "net/socket_address.h"
#include "net/tls.h"
#include "net/upgraded_connection.h"

namespace weft {

struct HttpRequest {
  std::string method;                          // "GET"
  std::string path;                            // without the query, not decoded
  std::string query;                           // after '?', not decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers;
};

// Called on the server's thread: must not block. For GET and HEAD without a body.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// The answer to one request: Send once, or Start, any number of Write, Finish. Thread-safe. What is
// not answered when the last owner lets go becomes a 500, or a stream that breaks off.
class HttpReply {
 public:
  virtual ~HttpReply() = default;
  virtual void Send(HttpResponse response) = 0;
  virtual void Start(int status, const std::string& content_type) = 0;
  // False: the client has gone, or reads so slowly that it was cut off.
  virtual bool Write(absl::string_view chunk) = 0;
  virtual void Finish() = 0;
  virtual bool IsOpen() const = 0;
  // Of a stream: what waits for the client to read. Whoever writes much should wait until this is
  // small.
  virtual size_t unsent_bytes() const = 0;
  // Called once on the server's thread, which it must not block, when the answer is finished or the
  // client has gone; at once if that was before.
  virtual void OnClose(absl::AnyInvocable<void()> callback) = 0;
  // In place of an answer: the server says 101 with these headers and lets go of the connection,
  // which `take` gets, on the server's thread; never called when the client has gone.
  using TakeConnection = absl::AnyInvocable<void(std::unique_ptr<UpgradedConnection>)>;
  virtual void Upgrade(const std::vector<std::pair<std::string, std::string>>& headers,
                       TakeConnection take) = 0;
};

// Called on the server's thread: must not block, but may hand the reply to others.
using HttpStreamHandler = std::function<void(HttpRequest, std::shared_ptr<HttpReply>)>;

// One thread serves all connections. Safe against clients that are slow, that say too much or that
// were led here by a foreign page: sizes and times are bounded, and the Host header must name an
// allowed host.
class HttpServer {
 public:
  struct Options {
    SocketAddress address = {"127.0.0.1", 0};
    std::vector<std::string> allowed_hosts = {"localhost", "127.0.0.1", "::1"};
    std::shared_ptr<TlsConfig> tls;  // null: plain text
    size_t max_header_bytes = 16 << 10;
    size_t max_body_bytes = 0;           // 0: requests with a body are not taken
    size_t max_unsent_bytes = 16 << 20;  // of a stream whose client does not read
    int max_connections = 64;  // the oldest idle one makes room, else newcomers are closed
    absl::Duration request_timeout = absl::Seconds(5);  // from the first byte to the last, each way
    absl::Duration idle_timeout = absl::Seconds(30);
    // How the server words what it refuses before any handler sees it; null: in plain text.
    std::function<HttpResponse(int status, absl::string_view text)> refusal;
  };

  // Routes are whole paths. The server listens when this returns.
  static StatusOr<std::unique_ptr<HttpServer>> Start(Options options,
                                                     std::map<std::string, HttpHandler> routes);
  static StatusOr<std::unique_ptr<HttpServer>> StartWithHandler(Options options,
                                                                HttpStreamHandler handler);
  // Closes all connections and joins the thread.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }

 private:
  explicit HttpServer(int port);
  const int port_;
  std::unique_ptr<class HttpServerLoop> loop_;
};

// The request in `head` (up to and including the empty line), or InvalidArgument. A body is not
// looked for; one whose length is not said is an error.
StatusOr<HttpRequest> ParseHttpRequest(absl::string_view head);
// "a=1&b=%20" with names in order; the last of a name wins.
std::map<std::string, std::string> ParseHttpQuery(absl::string_view query);
// "%2F" becomes "/"; what is no escape stays.
std::string DecodePercent(absl::string_view text);
std::string EncodePercent(absl::string_view text);

}  // namespace weft
