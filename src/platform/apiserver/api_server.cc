// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/api_server.h"

#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "base/threads.h"
#include "base/timers.h"
#include "net/certificate.h"
#include "platform/apiserver/api_request.h"
#include "platform/apiserver/discovery.h"
#include "platform/apiserver/event_forms.h"
#include "platform/apiserver/log_stream.h"
#include "platform/apiserver/node_identity.h"
#include "platform/apiserver/object_requests.h"
#include "platform/apiserver/openapi_protobuf.h"
#include "platform/apiserver/pod_metrics.h"
#include "platform/apiserver/remote_calls.h"
#include "platform/apiserver/self_review.h"
#include "platform/apiserver/watch_stream.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr size_t kMostBodyBytes = 3 << 20;  // as a real API server
constexpr int kMostConnections = 512;
constexpr int kMostStreams = kMostConnections * 3 / 4;  // the others stay for what is short

HttpResponse Text(absl::string_view text) {
  HttpResponse response;
  response.body = std::string(text);
  return response;
}

}  // namespace

class ApiServer::Requests {
 public:
  explicit Requests(Options options)
      : events_(options.store),
        options_(WithStore(std::move(options), &events_)),
        remote_calls_(
            [store = options_.store](const ObjectName& name) { return store->Get(Pods(), name); },
            options_.pods),
        threads_("api", options_.threads) {}

  // On the thread of the HTTP server.
  void Take(HttpRequest http, std::shared_ptr<HttpReply> reply) {
    if (http.path == "/livez" || http.path == "/readyz" || http.path == "/healthz") {
      return reply->Send(Text("ok"));
    }
    const auto header = http.headers.find("authorization");
    absl::string_view token;
    if (header != http.headers.end()) token = header->second;
    std::optional<std::string> node;
    const bool is_known = absl::ConsumePrefix(&token, "Bearer ") &&
                          (SameSecret(token, options_.token) ||
                           (node = NodeOfToken(token, options_.token)).has_value());
    if (!is_known) return reply->Send(ErrorResponse(ApiError(401, "Unauthorized", "Unauthorized")));
    threads_.Schedule(
        [this, http = std::move(http), reply = std::move(reply), node = std::move(node)]() mutable {
          Answer(std::move(http), node, std::move(reply));
        });
  }

  void set_port(int port) { port_.store(port); }

 private:
  // `node` is who asks, when it is one.
  void Answer(HttpRequest http, const std::optional<std::string>& node,
              std::shared_ptr<HttpReply> reply) {
    if (http.method == "GET" && AnswerPage(http, *reply)) return;
    if (http.method == "POST" && !node.has_value()) {
      if (const auto review = SelfReview(http.path)) return reply->Send(JsonResponse(201, *review));
    }
    if (const auto metrics = AnswerPodMetrics(options_.pods, options_.store, http))
      return reply->Send(*metrics);
    StatusOr<ApiRequest> request = ReadApiRequest(std::move(http));
    if (!request.ok()) return reply->Send(ErrorResponse(request.status()));
    if (node.has_value()) {
      const Status allowed = CheckNodeRequest(*node, *request, options_.store);
      if (!allowed.ok()) return reply->Send(ErrorResponse(allowed));
    }
    const bool is_get = request->http.method == "GET";
    const bool is_log = request->path.subresource == "log";
    const std::string& sub = request->path.subresource;
    if (sub == "exec" || sub == "attach" || sub == "portforward")
      return remote_calls_.Answer(*request, reply);
    const bool is_watch = is_get && request->IsWatch() && request->path.subresource.empty();
    if ((is_watch || is_log) && !CountStream(&reply)) return RefuseStream(*reply);
    if (is_log) {
      const PodLookup find_pod = [store = options_.store](const ObjectName& name) {
        return store->Get(Pods(), name);
      };
      return StreamLog(find_pod, options_.clock, &timers_, options_.log_path, *std::move(request),
                       std::move(reply));
    }
    if (is_watch) {
      return StreamWatch(options_.store, options_.clock, &timers_, *std::move(request),
                         std::move(reply));
    }
    const StatusOr<HttpResponse> response =
        AnswerObjectRequest(options_.store, *options_.clock, *request);
    reply->Send(response.ok() ? *response : ErrorResponse(response.status()));
  }

  // False when there are as many as may be. Else it counts until nobody holds the reply.
  bool CountStream(std::shared_ptr<HttpReply>* reply) {
    if (streams_->fetch_add(1) >= kMostStreams) {
      streams_->fetch_sub(1);
      return false;
    }
    HttpReply* const held = reply->get();
    *reply = {held, [owner = std::move(*reply), streams = streams_](HttpReply* /*held*/) mutable {
                owner.reset();
                streams->fetch_sub(1);
              }};
    return true;
  }

  static void RefuseStream(HttpReply& reply) {
    HttpResponse response =
        ErrorResponse(ApiError(429, "TooManyRequests",
                               absl::StrCat(kMostStreams,
                                            " watches and logs are open, no more are served: end "
                                            "some, or let one watch cover all namespaces")));
    response.headers.emplace_back("Retry-After", "1");
    reply.Send(std::move(response));
  }

  // False when there is no such page.
  bool AnswerPage(const HttpRequest& http, HttpReply& reply) {
    const std::optional<Json> page =
        DiscoveryPage(http.path, absl::StrCat("127.0.0.1:", port_.load()));
    if (!page.has_value()) return false;
    const auto found = http.headers.find("accept");
    const std::string accept = found == http.headers.end() ? "" : found->second;
    if (http.path == "/openapi/v2" && absl::StrContains(accept, kOpenApiV2Protobuf)) {
      HttpResponse response;
      // As API servers write it: an answer's type may have no @.
      response.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
      response.body = OpenApiV2InProtobuf();
      reply.Send(std::move(response));
      return true;
    }
    const StatusOr<AnswerForm> form = ChooseAnswerForm(accept);
    reply.Send(form.ok() ? JsonResponse(200, *page) : ErrorResponse(form.status()));
    return true;
  }

  static Options WithStore(Options options, ObjectStore* store) {
    options.store = store;
    return options;
  }

  EventForms events_;
  const Options options_;  // with that store
  std::atomic<int> port_{0};
  // Shared with the replies, which may outlive us.
  const std::shared_ptr<std::atomic<int>> streams_ = std::make_shared<std::atomic<int>>(0);
  TimerQueue timers_;
  RemoteCalls remote_calls_;
  ThreadPool threads_;  // last: it uses all of the above
};

ApiServer::ApiServer() = default;

ApiServer::~ApiServer() {
  // Connections first: no request comes any more and watches end.
  http_.reset();
  requests_.reset();
}

StatusOr<std::unique_ptr<ApiServer>> ApiServer::Start(Options options) {
  HttpServer::Options http;
  http.address = options.address;
  http.max_body_bytes = kMostBodyBytes;
  http.max_connections = kMostConnections;
  http.request_timeout = absl::Seconds(30);
  http.idle_timeout = absl::Seconds(90);
  http.refusal = [](int status, absl::string_view text) {
    return ErrorResponse(
        ApiError(status, status == 413 ? "RequestEntityTooLarge" : "BadRequest", text));
  };
  WEFT_ASSIGN_OR_RETURN(
      http.tls, TlsConfig::Server(options.identity.certificate_pem, options.identity.key_pem));
  if (options.token.empty()) return InvalidArgument("The API server needs a token");
  std::unique_ptr<ApiServer> server(new ApiServer());
  server->requests_ = std::make_unique<Requests>(std::move(options));
  Requests* const requests = server->requests_.get();
  WEFT_ASSIGN_OR_RETURN(
      server->http_,
      HttpServer::StartWithHandler(
          std::move(http), [requests](HttpRequest request, std::shared_ptr<HttpReply> reply) {
            requests->Take(std::move(request), std::move(reply));
          }));
  requests->set_port(server->port());
  return server;
}

int ApiServer::port() const { return http_->port(); }

}  // namespace weft::platform
