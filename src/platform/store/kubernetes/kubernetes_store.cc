// SPDX-License-Identifier: Apache-2.0
#include "platform/store/kubernetes/kubernetes_store.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"

#include "base/threads.h"
#include "net/http_server.h"
#include "platform/object/fields.h"
#include "platform/object/pod_annotations.h"
#include "platform/store/api_error.h"
#include "platform/store/kubernetes/list_reader.h"
#include "platform/store/kubernetes/watch_reader.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kListIdle = absl::Minutes(1);
constexpr int64_t kPageItems = 500;
constexpr int kMostListTries = 3;
constexpr absl::Duration kFirstPause = absl::Milliseconds(200);
constexpr absl::Duration kPatience = absl::Seconds(30);
// Servers end watches after some minutes; one that says nothing for longer has gone.
constexpr int kWatchSeconds = 300;
constexpr absl::Duration kWatchIdle = absl::Seconds(kWatchSeconds + 60);

class Query {
 public:
  Query& Add(const std::string& name, const std::string& value) {
    if (!value.empty()) parts_.push_back(absl::StrCat(name, "=", EncodePercent(value)));
    return *this;
  }
  std::string Text() const {
    return parts_.empty() ? "" : absl::StrCat("?", absl::StrJoin(parts_, "&"));
  }

 private:
  std::vector<std::string> parts_;
};

// `version` is one that the server serves; empty: the one in which objects are kept.
std::string PathOf(const ResourceType& type, const ObjectName& name,
                   const std::string& subresource = "", const std::string& version = "") {
  const std::string& spoken = version.empty() ? type.version : version;
  std::string path = type.group.empty() ? absl::StrCat("/api/", spoken)
                                        : absl::StrCat("/apis/", type.group, "/", spoken);
  if (type.is_namespaced && !name.namespace_name.empty()) {
    absl::StrAppend(&path, "/namespaces/", EncodePercent(name.namespace_name));
  }
  absl::StrAppend(&path, "/", type.plural);
  if (!name.name.empty()) absl::StrAppend(&path, "/", EncodePercent(name.name));
  if (!subresource.empty()) absl::StrAppend(&path, "/", subresource);
  return path;
}

// The server gives up when we do.
std::string WithTimeout(const std::string& path, absl::Duration timeout) {
  return absl::StrCat(path, absl::StrContains(path, '?') ? "&" : "?",
                      "timeout=", absl::ToInt64Milliseconds(timeout), "ms");
}

std::string WriteQuery(const WriteOptions& options) {
  return Query()
      .Add("dryRun", options.is_dry_run ? "All" : "")
      .Add("fieldValidation", options.is_strict ? "Strict" : "Ignore")
      .Add("fieldManager", options.field_manager.empty() ? "weft" : options.field_manager)
      .Text();
}

// An API server answers with a Status, but for a kind that it does not know.
Status ErrorOf(const HttpAnswer& answer, absl::string_view path) {
  const StatusOr<Json> body = Json::Parse(answer.body);
  if (answer.status == 404 && (!body.ok() || StringField(*body, {"kind"}) != "Status")) {
    return ApiError(404, "NotFound",
                    absl::StrCat("The server knows no ", path.substr(0, path.find('?')),
                                 ": `weft doctor cluster` says what is not installed"));
  }
  return StatusFromObject(body.ok() ? *body : Json(), answer.status);
}

bool IsWorthRetrying(const StatusOr<HttpAnswer>& answer, bool is_read) {
  if (!answer.ok()) return is_read && absl::IsUnavailable(answer.status());
  if (answer->status == 429) return true;
  return is_read && (answer->status == 502 || answer->status == 503 || answer->status == 504);
}

std::string PolicyName(Propagation propagation) {
  switch (propagation) {
    case Propagation::kBackground:
      return "Background";
    case Propagation::kForeground:
      return "Foreground";
    case Propagation::kOrphan:
      return "Orphan";
  }
  return "Background";
}

}  // namespace

StatusOr<std::unique_ptr<KubernetesStore>> KubernetesStore::Connect(const ClusterAccess& access,
                                                                    const Clock* clock) {
  StatusOr<std::unique_ptr<HttpClient>> client = HttpClient::Create(access.server, access.tls);
  if (!client.ok()) {
    // Nothing was asked yet: what is wrong is in the file.
    return Annotate(client.status(),
                    absl::StrCat("The way to ", access.server, access.origin.empty() ? "" : ", as ",
                                 access.origin));
  }
  return std::unique_ptr<KubernetesStore>(
      new KubernetesStore(*std::move(client), std::make_unique<Credentials>(access, clock), clock));
}

KubernetesStore::~KubernetesStore() = default;

StatusOr<HttpAnswer> KubernetesStore::Exchange(HttpCall call, const HttpClient::Sink* sink,
                                               absl::Duration deadline) {
  const bool is_read = call.method == "GET";
  const absl::Duration give_up = std::min(clock_->Monotonic() + kPatience, deadline);
  const absl::Duration longest = call.timeout;
  const std::string path = call.path;
  const auto headers = call.headers;
  bool has_new_credentials = false;
  for (absl::Duration pause = kFirstPause;; pause *= 2) {
    WEFT_ASSIGN_OR_RETURN(const std::string authorization, credentials_->AuthorizationHeader());
    call.headers = headers;
    if (!authorization.empty()) call.headers.emplace_back("Authorization", authorization);
    if (deadline < absl::InfiniteDuration()) {
      call.timeout = std::min(longest, deadline - clock_->Monotonic());
      if (call.timeout < absl::Milliseconds(1)) {
        return DeadlineExceeded("No time is left for ", call.method, " ", path);
      }
      call.path = WithTimeout(path, call.timeout);
    }
    StatusOr<HttpAnswer> answer =
        sink == nullptr ? client_->Send(call) : client_->Stream(call, *sink);
    if (answer.ok() && answer->status == 401 && !has_new_credentials) {
      has_new_credentials = true;
      credentials_->Forget();
      continue;
    }
    if (answer.ok() && answer->status == 401) {
      return ApiError(401, "Unauthorized", credentials_->DescribeRefusal());
    }
    if (!IsWorthRetrying(answer, is_read && sink == nullptr) ||
        clock_->Monotonic() + pause > give_up)
      return answer;
    if (call.cancellation != nullptr && call.cancellation->IsCancelled())
      return call.cancellation->status();
    absl::SleepFor(pause);
  }
}

StatusOr<Json> KubernetesStore::Ask(const std::string& method, const std::string& path,
                                    const std::string& body, const std::string& content_type,
                                    absl::Duration deadline) {
  HttpCall call;
  call.method = method;
  call.path = path;
  call.body = body;
  call.headers = {{"Accept", "application/json"}, {"User-Agent", "weft"}};
  if (!body.empty()) call.headers.emplace_back("Content-Type", content_type);
  WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, Exchange(std::move(call), nullptr, deadline));
  if (answer.status / 100 != 2) return ErrorOf(answer, path);
  JsonLimits limits;
  limits.max_bytes = size_t{256} << 20;
  return Json::Parse(answer.body, limits);
}

StatusOr<ObjectPtr> KubernetesStore::AskObject(const std::string& method, const std::string& path,
                                               const Json& body, absl::Duration deadline,
                                               const std::string& content_type) {
  WEFT_ASSIGN_OR_RETURN(
      Json object, Ask(method, path, body.is_null() ? "" : body.Dump(), content_type, deadline));
  return std::make_shared<const Json>(std::move(object));
}

StatusOr<Json> KubernetesStore::GetPage(const std::string& path) {
  return Ask("GET", path, "", "");
}

StatusOr<ObjectPtr> KubernetesStore::Get(const ResourceType& type, const ObjectName& name) {
  return AskObject("GET", PathOf(type, name), Json());
}

// All of them in pages: the pods of a large job are hundreds of megabytes.
StatusOr<ObjectList> KubernetesStore::List(const ResourceType& type, const ListOptions& options) {
  if (options.limit > 0 || !options.continue_token.empty() || !options.revision.empty())
    return ListPage(type, options);
  ListOptions page = options;
  page.limit = kPageItems;
  ObjectList all;
  for (int tries = 1;;) {
    StatusOr<ObjectList> next = ListPage(type, page);
    if (IsExpired(next.status()) && tries++ < kMostListTries) {
      // The pages before are too old by now for what follows on them.
      all = ObjectList();
      page.continue_token.clear();
      continue;
    }
    WEFT_RETURN_IF_ERROR(next.status());
    all.revision = next->revision;
    std::move(next->items.begin(), next->items.end(), std::back_inserter(all.items));
    if (next->continue_token.empty()) return all;
    page.continue_token = next->continue_token;
  }
}

StatusOr<ObjectList> KubernetesStore::ListPage(const ResourceType& type,
                                               const ListOptions& options) {
  const std::string query = Query()
                                .Add("labelSelector", options.label_selector)
                                .Add("fieldSelector", options.field_selector)
                                .Add("limit", options.limit > 0 ? absl::StrCat(options.limit) : "")
                                .Add("continue", options.continue_token)
                                .Add("resourceVersion", options.revision)
                                .Add("resourceVersionMatch", options.is_exact ? "Exact" : "")
                                .Text();
  WEFT_ASSIGN_OR_RETURN(Json answer,
                        Ask("GET", PathOf(type, {options.namespace_name, ""}) + query, "", ""));
  ObjectList list;
  list.revision = RevisionOf(answer);
  list.continue_token = StringField(answer, {"metadata", "continue"});
  list.remaining = IntField(answer, {"metadata", "remainingItemCount"});
  Json* const items = answer.FindMutable("items");
  if (items == nullptr || !items->is_array()) return list;
  for (Json& item : *items->mutable_items()) {
    DropFieldOwners(&item);
    // Items of lists do not say what they are.
    item.Set("apiVersion", type.ApiVersion());
    item.Set("kind", type.kind);
    list.items.push_back(std::make_shared<const Json>(std::move(item)));
  }
  return list;
}

StatusOr<ObjectPtr> KubernetesStore::Create(const ResourceType& type,
                                            const std::string& namespace_name, Json object,
                                            const WriteOptions& options) {
  if (object.Find("apiVersion") == nullptr) object.Set("apiVersion", type.ApiVersion());
  object.Set("kind", type.kind);
  // The version of the path has to be that of the object.
  const std::string version = SplitApiVersion(StringField(object, {"apiVersion"})).version;
  return AskObject("POST",
                   PathOf(type, {namespace_name, ""}, "", type.Serves(version) ? version : "") +
                       WriteQuery(options),
                   object, options.deadline);
}

StatusOr<ObjectPtr> KubernetesStore::Update(const ResourceType& type, Json object,
                                            const WriteOptions& options) {
  const ObjectName name{NamespaceOf(object), NameOf(object)};
  if (options.subresource == "binding") {
    Json binding;
    binding.Set("apiVersion", "v1");
    binding.Set("kind", "Binding");
    SetField(&binding, {"metadata", "name"}, name.name);
    SetField(&binding, {"metadata", "uid"}, UidOf(object));
    // The server takes them over to the pod; what others wrote there is there already.
    if (const Json* const annotations = FindField(object, {"metadata", "annotations"})) {
      for (const JsonMember& annotation : annotations->members()) {
        if (absl::StartsWith(annotation.name, kAnnotationPrefix))
          SetField(&binding, {"metadata", "annotations", annotation.name}, annotation.value);
      }
    }
    SetField(&binding, {"target", "apiVersion"}, "v1");
    SetField(&binding, {"target", "kind"}, "Node");
    SetField(&binding, {"target", "name"}, StringField(object, {"spec", "nodeName"}));
    return AskObject("POST", PathOf(type, name, "binding"), binding, options.deadline);
  }
  object.Set("apiVersion", type.ApiVersion());
  object.Set("kind", type.kind);
  return AskObject("PUT", PathOf(type, name, options.subresource) + WriteQuery(options), object,
                   options.deadline);
}

StatusOr<ObjectPtr> KubernetesStore::Patch(const ResourceType& type, const ObjectName& name,
                                           PatchKind kind, const Json& patch,
                                           const WriteOptions& options) {
  const char* const media = kind == PatchKind::kMerge   ? "application/merge-patch+json"
                            : kind == PatchKind::kJson  ? "application/json-patch+json"
                            : kind == PatchKind::kApply ? "application/apply-patch+yaml"
                                                        : "application/strategic-merge-patch+json";
  return AskObject("PATCH", PathOf(type, name, options.subresource) + WriteQuery(options), patch,
                   options.deadline, media);
}

StatusOr<ObjectPtr> KubernetesStore::Delete(const ResourceType& type, const ObjectName& name,
                                            const DeleteOptions& options) {
  Json body;
  body.Set("apiVersion", "v1");
  body.Set("kind", "DeleteOptions");
  body.Set("propagationPolicy", PolicyName(options.propagation));
  if (options.grace_seconds.has_value()) body.Set("gracePeriodSeconds", *options.grace_seconds);
  if (!options.uid.empty()) SetField(&body, {"preconditions", "uid"}, options.uid);
  if (!options.revision.empty())
    SetField(&body, {"preconditions", "resourceVersion"}, options.revision);
  if (options.is_dry_run) body.Set("dryRun", Json(Json::Array{Json("All")}));
  return AskObject("DELETE", PathOf(type, name), body, options.deadline);
}

Status KubernetesStore::StreamLog(const ObjectName& pod, const LogOptions& options,
                                  const HttpClient::Sink& sink, Cancellation* cancellation) {
  HttpCall call;
  call.path = PathOf(Pods(), pod, "log") +
              Query()
                  .Add("container", options.container)
                  .Add("follow", options.follows ? "true" : "")
                  .Add("previous", options.is_previous ? "true" : "")
                  .Add("timestamps", options.with_times ? "true" : "")
                  .Add("tailLines", options.tail_lines >= 0 ? absl::StrCat(options.tail_lines) : "")
                  .Text();
  call.headers = {{"Accept", "*/*"}, {"User-Agent", "weft"}};
  call.cancellation = cancellation;
  const std::string path = call.path;
  WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, Exchange(std::move(call), &sink));
  return answer.status / 100 == 2 ? absl::OkStatus() : ErrorOf(answer, path);
}

// Lists and watches on its own thread until it is destroyed or fails.
class KubernetesStore::ServerWatch : public Watch {
 public:
  ServerWatch(KubernetesStore* store, const ResourceType& type, WatchOptions options,
              WatchSink sink)
      : store_(store), type_(type), options_(std::move(options)), sink_(std::move(sink)) {
    thread_ = std::make_unique<Thread>("watch", [this] { Run(); });
  }
  ~ServerWatch() override {
    cancellation_.Cancel(Cancelled("The watch is over"));
    thread_.reset();
  }

 private:
  void Run() {
    revision_ = options_.revision;
    Status status = absl::OkStatus();
    if (revision_.empty() || revision_ == "0") status = ListAll();
    while (status.ok() && !cancellation_.IsCancelled()) status = WatchOnce();
    if (cancellation_.IsCancelled()) return;
    WatchEvent event;
    event.kind = WatchEvent::Kind::kError;
    event.error = status;
    sink_(event);
  }

  // In one piece, which API servers have at hand; by pages they would read their disk.
  Status ListAll() {
    HttpCall call;
    call.path = PathOf(type_, {options_.namespace_name, ""}) +
                Query()
                    .Add("labelSelector", options_.label_selector)
                    .Add("fieldSelector", options_.field_selector)
                    .Text();
    call.headers = {{"Accept", "application/json"}, {"User-Agent", "weft"}};
    call.cancellation = &cancellation_;
    call.idle_timeout = kListIdle;
    ListReader reader([this](Json item) {
      DropFieldOwners(&item);
      // Items of lists do not say what they are.
      item.Set("apiVersion", type_.ApiVersion());
      item.Set("kind", type_.kind);
      sink_(WatchEvent{WatchEvent::Kind::kAdded, std::make_shared<const Json>(std::move(item)),
                       absl::OkStatus()});
      return absl::OkStatus();
    });
    const HttpClient::Sink take = [&](absl::string_view piece) { return reader.Take(piece); };
    const std::string path = call.path;
    WEFT_ASSIGN_OR_RETURN(const HttpAnswer answer, store_->Exchange(std::move(call), &take));
    if (answer.status / 100 != 2) return ErrorOf(answer, path);
    WEFT_ASSIGN_OR_RETURN(const Json list, reader.Finish());
    revision_ = RevisionOf(list);
    if (revision_.empty()) return Unavailable("A list of ", type_.Id(), " has no resourceVersion");
    if (!options_.marks_initial_end) return absl::OkStatus();
    Json mark;
    mark.Set("kind", type_.kind);
    SetField(&mark, {"metadata", "resourceVersion"}, revision_);
    SetField(&mark, {"metadata", "annotations", "k8s.io/initial-events-end"}, "true");
    sink_(WatchEvent{WatchEvent::Kind::kBookmark, std::make_shared<const Json>(std::move(mark)),
                     absl::OkStatus()});
    return absl::OkStatus();
  }

  Status WatchOnce() {
    HttpCall call;
    call.path = PathOf(type_, {options_.namespace_name, ""}) +
                Query()
                    .Add("watch", "true")
                    .Add("allowWatchBookmarks", "true")
                    .Add("resourceVersion", revision_)
                    .Add("labelSelector", options_.label_selector)
                    .Add("fieldSelector", options_.field_selector)
                    .Add("timeoutSeconds", absl::StrCat(kWatchSeconds))
                    .Text();
    call.headers = {{"Accept", "application/json"}, {"User-Agent", "weft"}};
    call.cancellation = &cancellation_;
    call.idle_timeout = kWatchIdle;
    WatchReader reader(&type_, sink_);
    const HttpClient::Sink take = [&](absl::string_view piece) { return reader.Take(piece); };
    const std::string path = call.path;
    const StatusOr<HttpAnswer> answer = store_->Exchange(std::move(call), &take);
    if (!reader.revision().empty()) revision_ = reader.revision();
    if (!answer.ok()) return answer.status();
    return answer->status / 100 == 2 ? absl::OkStatus() : ErrorOf(*answer, path);
  }

  KubernetesStore* const store_;
  const ResourceType& type_;
  const WatchOptions options_;
  const WatchSink sink_;
  Cancellation cancellation_;
  std::string revision_;
  std::unique_ptr<Thread> thread_;
};

StatusOr<std::unique_ptr<Watch>> KubernetesStore::StartWatch(const ResourceType& type,
                                                             const WatchOptions& options,
                                                             WatchSink sink) {
  return std::make_unique<ServerWatch>(this, type, options, std::move(sink));
}

}  // namespace weft::platform
