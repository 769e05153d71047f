// SPDX-License-Identifier: Apache-2.0
// A small HTTP/1.1 server for /healthz, /metrics and their kind: GET and HEAD, no bodies, on loopback.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "net/socket_address.h"

namespace weft {

struct HttpRequest {
  std::string method;                          // "GET" or "HEAD"
  std::string path;                            // without the query
  std::string query;                           // after '?', not decoded
  std::map<std::string, std::string> headers;  // names in lower case
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

// Called on the server's thread: must not block.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// One thread serves all connections. Safe against clients that are slow, that say too much or that were led here by a
// foreign page: sizes and times are bounded, and the Host header must name an allowed host.
class HttpServer {
 public:
  struct Options {
    SocketAddress address = {"127.0.0.1", 0};
    std::vector<std::string> allowed_hosts = {"localhost", "127.0.0.1", "::1"};
    size_t max_header_bytes = 16 << 10;
    int max_connections = 64;  // the oldest idle one makes room, else newcomers are closed
    absl::Duration request_timeout = absl::Seconds(5);  // from the first byte to the last, each way
    absl::Duration idle_timeout = absl::Seconds(30);
  };

  // Routes are whole paths. The server listens when this returns.
  static StatusOr<std::unique_ptr<HttpServer>> Start(Options options,
                                                     std::map<std::string, HttpHandler> routes);
  // Closes all connections and joins the thread.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }

 private:
  class Loop;
  explicit HttpServer(int port);
  const int port_;
  std::unique_ptr<Loop> loop_;
};

// The request in `head` (up to and including the empty line), or InvalidArgument.
StatusOr<HttpRequest> ParseHttpRequest(absl::string_view head);

}  // namespace weft
