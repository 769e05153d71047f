// SPDX-License-Identifier: Apache-2.0
// An HTTP/1.1 client for one server, with TLS, connections that are kept, and answers that come in
// a stream.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/cancellation.h"
#include "base/status.h"
#include "net/tls.h"

namespace weft {

// "https://host:port/prefix" in its parts.
struct HttpUrl {
  bool is_tls = true;
  std::string host;
  int port = 443;
  std::string path;  // without a slash at its end; may be empty
};
StatusOr<HttpUrl> ParseHttpUrl(absl::string_view url);

struct HttpCall {
  std::string method = "GET";
  std::string path;  // with its query, encoded; behind the url's own path
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  absl::Duration timeout = absl::Seconds(60);  // of the whole call; of a stream until it begins
  absl::Duration idle_timeout = absl::InfiniteDuration();  // of a stream: without any byte
  Cancellation* cancellation = nullptr;                    // borrowed
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

// Thread-safe; calls block the thread that makes them. Errors: Unavailable (no connection, or it
// broke; the call may have had its effect), DeadlineExceeded, Cancelled's reason, Unauthenticated
// (a certificate that is not trusted). An HTTP status is no error.
class HttpClient {
 public:
  static StatusOr<std::unique_ptr<HttpClient>> Create(const std::string& url,
                                                      const TlsClientOptions& tls);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  StatusOr<HttpAnswer> Send(const HttpCall& call);
  // The sink gets the body of a 2xx answer piece by piece and ends the call by returning an error,
  // which comes back. Any other answer comes back whole.
  using Sink = std::function<Status(absl::string_view piece)>;
  StatusOr<HttpAnswer> Stream(const HttpCall& call, const Sink& sink);

 private:
  class Connection;
  HttpClient(HttpUrl url, std::shared_ptr<TlsConfig> tls);
  StatusOr<HttpAnswer> Exchange(const HttpCall& call, const Sink* sink);
  std::unique_ptr<Connection> TakeIdle();

  const HttpUrl url_;
  const std::shared_ptr<TlsConfig> tls_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft
