// SPDX-License-Identifier: Apache-2.0
#include "platform/page/page_server.h"

#include <map>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"

#include "base/threads.h"
#include "net/certificate.h"
#include "platform/object/fields.h"
#include "platform/page/page_actions.h"
#include "platform/page/page_files.h"
#include "platform/page/page_guard.h"
#include "platform/page/page_stream.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr size_t kMostBodyBytes = 1 << 20;
constexpr size_t kMostUnsentBytes = 64 << 20;
constexpr size_t kMostStreams = 128;
constexpr size_t kMostUsers = 256;
constexpr int64_t kMostLogLines = 100000;

const char* ContentTypeOf(absl::string_view path) {
  for (const auto& [ending, type] : {std::pair{".html", "text/html; charset=utf-8"},
                                     {".css", "text/css; charset=utf-8"},
                                     {".js", "text/javascript; charset=utf-8"},
                                     {".svg", "image/svg+xml"}}) {
    if (absl::EndsWith(path, ending)) return type;
  }
  return "application/octet-stream";
}

HttpResponse FileResponse(const HttpRequest& request) {
  const std::string path = request.path == "/" ? "/index.html" : request.path;
  const auto file = PageFiles().find(path);
  HttpResponse response;
  AddPageHeaders(&response);
  if (file == PageFiles().end()) {
    response.status = 404;
    response.body = "There is no such page.\n";
    return response;
  }
  const std::string tag = absl::StrCat("\"", SealOf("page", file->second).substr(0, 24), "\"");
  response.headers.emplace_back("ETag", tag);
  response.headers.emplace_back("Cache-Control", "no-cache");
  response.content_type = ContentTypeOf(path);
  const auto known = request.headers.find("if-none-match");
  if (known != request.headers.end() && known->second == tag) {
    response.status = 304;
    return response;
  }
  response.body = std::string(file->second);
  return response;
}

using Query = std::map<std::string, std::string>;

}  // namespace

class PageServer::Requests {
 public:
  explicit Requests(Options options) : options_(std::move(options)), threads_("page", 4) {}

  // On the thread of the HTTP server.
  void Take(HttpRequest request, std::shared_ptr<HttpReply> reply) {
    const Status is_own = CheckSameSite(request);
    if (!is_own.ok()) return reply->Send(PageError(is_own));
    if (request.path == "/healthz") return reply->Send(PageAnswer("ok"));
    if (!absl::StartsWith(request.path, "/api/")) {
      if (request.method != "GET" && request.method != "HEAD")
        return reply->Send(PageError(ApiError(405, "MethodNotAllowed", "Files are only read")));
      return reply->Send(FileResponse(request));
    }
    threads_.Schedule([this, request = std::move(request), reply = std::move(reply)]() mutable {
      Answer(request, std::move(reply));
    });
  }

 private:
  void Answer(const HttpRequest& request, std::shared_ptr<HttpReply> reply) {
    const std::string key = KeyOf(request);
    StatusOr<std::shared_ptr<KubernetesStore>> store =
        key.empty() ? ApiError(401, "Unauthorized", "A key is needed") : options_.open(key);
    if (!store.ok()) return reply->Send(PageError(store.status()));
    const Query query = ParseHttpQuery(request.query);
    if (request.method == "GET" && request.path == "/api/live")
      return Feed(*std::move(store), query, std::move(reply));
    if (request.method == "GET" && request.path == "/api/log")
      return ShowLog(*std::move(store), query, std::move(reply));
    const StatusOr<Json> answer = request.method == "GET" ? Read(store->get(), request.path, query)
                                                          : Write(store->get(), request);
    reply->Send(answer.ok() ? PageAnswer(*answer) : PageError(answer.status()));
  }

  static std::string Value(const Query& query, const char* name) {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }

  StatusOr<Json> Read(KubernetesStore* store, const std::string& path, const Query& query) {
    if (path == "/api/who") {
      WEFT_ASSIGN_OR_RETURN(Json who, WhoIs(store, Value(query, "namespace")));
      who.Set("namespace", options_.namespace_name);
      if (options_.is_read_only) who.Set("rights", Json::MakeObject());
      return who;
    }
    if (path == "/api/object") {
      WEFT_ASSIGN_OR_RETURN(
          const std::string text,
          ObjectText(store, Value(query, "kind"), {Value(query, "namespace"), Value(query, "name")},
                     Value(query, "copy") == "1"));
      Json answer;
      answer.Set("text", text);
      return answer;
    }
    return ApiError(404, "NotFound", absl::StrCat("There is no ", path));
  }

  StatusOr<Json> Write(KubernetesStore* store, const HttpRequest& request) {
    if (options_.is_read_only)
      return PermissionDenied("This page only shows: it was started with --read_only");
    if (request.method != "POST") return ApiError(405, "MethodNotAllowed", "POST is allowed");
    WEFT_ASSIGN_OR_RETURN(const Json body, Json::Parse(request.body));
    const ObjectName name = {StringField(body, {"namespace"}), StringField(body, {"name"})};
    const std::string kind = StringField(body, {"kind"});
    if (request.path == "/api/check" || request.path == "/api/create")
      return CreateObjects(store, StringField(body, {"text"}), name.namespace_name,
                           /*is_dry_run=*/request.path == "/api/check");
    Status done;
    if (request.path == "/api/stop") {
      done = StopTrial(store, name);
    } else if (request.path == "/api/suspend") {
      done = SuspendJob(store, kind, name, BoolField(body, {"suspend"}));
    } else if (request.path == "/api/delete") {
      done = DeleteObject(store, kind, name, StringField(body, {"uid"}));
    } else {
      done = ApiError(404, "NotFound", absl::StrCat("There is no ", request.path));
    }
    WEFT_RETURN_IF_ERROR(done);
    return Json::MakeObject();
  }

  void Feed(std::shared_ptr<KubernetesStore> store, const Query& query,
            std::shared_ptr<HttpReply> reply) {
    FeedRequest request;
    request.kinds = absl::StrSplit(Value(query, "kinds"), ',', absl::SkipEmpty());
    request.namespace_name = Value(query, "namespace");
    request.experiment = Value(query, "experiment");
    request.object = Value(query, "object");
    if (!HasRoom(*reply)) return;
    StatusOr<std::unique_ptr<PageStream>> feed = StartFeed(std::move(store), request, reply);
    if (!feed.ok()) return reply->Send(PageError(feed.status()));
    Keep(*std::move(feed), reply.get());
  }

  void ShowLog(std::shared_ptr<KubernetesStore> store, const Query& query,
               std::shared_ptr<HttpReply> reply) {
    LogOptions options;
    options.container = Value(query, "container");
    options.follows = Value(query, "follow") == "1";
    options.is_previous = Value(query, "previous") == "1";
    if (!absl::SimpleAtoi(Value(query, "tail"), &options.tail_lines) || options.tail_lines < 0 ||
        options.tail_lines > kMostLogLines)
      options.tail_lines = 2000;
    if (!HasRoom(*reply)) return;
    const ObjectName pod = {Value(query, "namespace"), Value(query, "pod")};
    if (pod.namespace_name.empty() || pod.name.empty())
      return reply->Send(PageError(InvalidArgument("namespace and pod are needed")));
    Keep(StartLog(std::move(store), pod, options, reply), reply.get());
  }

  bool HasRoom(HttpReply& reply) {
    {
      absl::MutexLock lock(&mutex_);
      if (streams_.size() < kMostStreams) return true;
    }
    reply.Send(
        PageError(ApiError(429, "TooManyRequests", "Too many pages are open at once: close some")));
    return false;
  }

  // Until nobody reads it. The reply lives as long as its stream.
  void Keep(std::unique_ptr<PageStream> stream, HttpReply* reply) {
    int64_t number = 0;
    {
      absl::MutexLock lock(&mutex_);
      number = next_stream_++;
      streams_[number] = std::move(stream);
    }
    // Its end waits for threads, which the server's own must not.
    reply->OnClose([this, number] { threads_.Schedule([this, number] { End(number); }); });
  }

  void End(int64_t number) {
    std::unique_ptr<PageStream> ended;
    {
      absl::MutexLock lock(&mutex_);
      const auto found = streams_.find(number);
      if (found == streams_.end()) return;
      ended = std::move(found->second);
      streams_.erase(found);
    }
  }

  const Options options_;
  absl::Mutex mutex_;
  int64_t next_stream_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::unique_ptr<PageStream>> streams_ ABSL_GUARDED_BY(mutex_);
  ThreadPool threads_;  // last: it uses all of the above
};

PageServer::PageServer() = default;

PageServer::~PageServer() {
  // Connections first: no request comes any more and streams end.
  http_.reset();
  requests_.reset();
}

StatusOr<std::unique_ptr<PageServer>> PageServer::Start(Options options) {
  HttpServer::Options http;
  http.address = options.address;
  http.allowed_hosts.insert(http.allowed_hosts.end(), options.hosts.begin(), options.hosts.end());
  http.tls = options.tls;
  http.max_body_bytes = kMostBodyBytes;
  http.max_unsent_bytes = kMostUnsentBytes;
  http.max_connections = 512;
  http.request_timeout = absl::Seconds(30);
  http.refusal = [](int status, absl::string_view text) {
    return PageError(ApiError(status, "BadRequest", text));
  };
  std::unique_ptr<PageServer> server(new PageServer());
  server->requests_ = std::make_unique<Requests>(std::move(options));
  Requests* const requests = server->requests_.get();
  WEFT_ASSIGN_OR_RETURN(
      server->http_,
      HttpServer::StartWithHandler(
          std::move(http), [requests](HttpRequest request, std::shared_ptr<HttpReply> reply) {
            requests->Take(std::move(request), std::move(reply));
          }));
  return server;
}

int PageServer::port() const { return http_->port(); }

PageServer::OpenStore OpenWithKey(std::string key, std::shared_ptr<KubernetesStore> store) {
  return [key = std::move(key), store = std::move(store)](
             const std::string& shown) -> StatusOr<std::shared_ptr<KubernetesStore>> {
    if (SameSecret(shown, key)) return store;
    return ApiError(401, "Unauthorized", "This is not the key that weft printed when it started");
  };
}

PageServer::OpenStore OpenWithToken(ClusterAccess access, const Clock* clock) {
  struct Users {
    absl::Mutex mutex;
    // By a digest: tokens are not kept as such.
    std::map<std::string, std::shared_ptr<KubernetesStore>> stores ABSL_GUARDED_BY(mutex);
  };
  // Nothing of our own may stand behind a token that the cluster does not know.
  access.token_file.clear();
  access.basic.clear();
  access.exec = {};
  access.tls.certificate_pem.clear();
  access.tls.key_pem.clear();
  access.origin = "the key that was typed";
  access.check.clear();
  // Shared with the copies that a function makes of itself.
  const auto users = std::make_shared<Users>();
  return [access = std::move(access), clock,
          users](const std::string& token) -> StatusOr<std::shared_ptr<KubernetesStore>> {
    const std::string digest = SealOf("page", token);
    absl::MutexLock lock(&users->mutex);
    const auto found = users->stores.find(digest);
    if (found != users->stores.end()) return found->second;
    if (users->stores.size() >= kMostUsers) users->stores.clear();
    ClusterAccess own = access;
    own.token = token;
    WEFT_ASSIGN_OR_RETURN(std::shared_ptr<KubernetesStore> store,
                          KubernetesStore::Connect(own, clock));
    users->stores[digest] = store;
    return store;
  };
}

}  // namespace weft::platform
