// SPDX-License-Identifier: Apache-2.0
#include "platform/page/page_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

#include "base/threads.h"
#include "platform/object/fields.h"
#include "platform/object/trial_template.h"
#include "platform/page/page_guard.h"
#include "platform/page/page_rows.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr size_t kMostUnsent = 4 << 20;      // before a writer waits for the reader
constexpr size_t kMostCollected = 32 << 10;  // lines that travel together

// Both streams are fed by threads of their own, which may wait.
bool WriteSlowly(HttpReply* reply, const std::string& text) {
  while (reply->IsOpen() && reply->unsent_bytes() > kMostUnsent)
    absl::SleepFor(absl::Milliseconds(5));
  return reply->Write(text);
}

class Feed : public PageStream {
 public:
  Feed(std::shared_ptr<KubernetesStore> store, std::shared_ptr<HttpReply> reply)
      : store_(std::move(store)), reply_(std::move(reply)) {}

  void Follow(const RowKind& kind, const FeedRequest& request) {
    for (const ResourceType* const type : kind.types) {
      WatchOptions options;
      options.marks_initial_end = true;
      if (type->is_namespaced) options.namespace_name = request.namespace_name;
      if (kind.name == std::string("trials") && !request.experiment.empty())
        options.label_selector = absl::StrCat(kExperimentLabel, "=", request.experiment);
      if (kind.name == std::string("events") && !request.object.empty())
        options.field_selector = absl::StrCat("involvedObject.name=", request.object);
      auto lines = std::make_shared<Lines>();
      StatusOr<std::unique_ptr<Watch>> watch = store_->StartWatch(
          *type, options,
          [this, kind, lines](const WatchEvent& event) { Hear(kind, event, lines.get()); });
      if (watch.ok()) watches_.push_back(*std::move(watch));
    }
  }

 private:
  struct Lines {
    std::string text;
    bool is_whole = false;
  };

  void Hear(const RowKind& kind, const WatchEvent& event, Lines* lines) {
    Json line;
    line.Set("kind", kind.name);
    switch (event.kind) {
      case WatchEvent::Kind::kAdded:
      case WatchEvent::Kind::kModified:
        line.Set("row", kind.row(*event.object));
        break;
      case WatchEvent::Kind::kDeleted:
        line.Set("gone", RowKey(*event.object));
        break;
      case WatchEvent::Kind::kBookmark:
        if (lines->is_whole) return;
        lines->is_whole = true;
        line.Set("whole", true);
        break;
      case WatchEvent::Kind::kError:
        line.Set("error", std::string(event.error.message()));
        line.Set("code", HttpCodeOf(event.error));
        lines->is_whole = true;
        break;
    }
    absl::StrAppend(&lines->text, line.Dump(), "\n");
    if (!lines->is_whole && lines->text.size() < kMostCollected) return;
    (void)WriteSlowly(reply_.get(), lines->text);
    lines->text.clear();
  }

  const std::shared_ptr<KubernetesStore> store_;
  const std::shared_ptr<HttpReply> reply_;
  std::vector<std::unique_ptr<Watch>> watches_;  // first to go
};

class Log : public PageStream {
 public:
  Log(std::shared_ptr<KubernetesStore> store, ObjectName pod, LogOptions options,
      std::shared_ptr<HttpReply> reply)
      : store_(std::move(store)), reply_(std::move(reply)) {
    thread_ = std::make_unique<Thread>(
        "page log",
        [this, pod = std::move(pod), options = std::move(options)] { Run(pod, options); });
  }
  ~Log() override {
    cancellation_.Cancel(Cancelled("Nobody reads the log any more"));
    thread_.reset();
  }

 private:
  void Run(const ObjectName& pod, const LogOptions& options) {
    bool has_begun = false;
    const Status status = store_->StreamLog(
        pod, options,
        [&](absl::string_view piece) {
          if (!has_begun) reply_->Start(200, "text/plain; charset=utf-8");
          has_begun = true;
          return WriteSlowly(reply_.get(), std::string(piece)) ? absl::OkStatus()
                                                               : Cancelled("the reader has gone");
        },
        &cancellation_);
    if (!has_begun && !status.ok()) return reply_->Send(PageError(status));
    if (!has_begun) reply_->Start(200, "text/plain; charset=utf-8");
    reply_->Finish();
  }

  const std::shared_ptr<KubernetesStore> store_;
  const std::shared_ptr<HttpReply> reply_;
  Cancellation cancellation_;
  std::unique_ptr<Thread> thread_;
};

}  // namespace

StatusOr<std::unique_ptr<PageStream>> StartFeed(std::shared_ptr<KubernetesStore> store,
                                                const FeedRequest& request,
                                                std::shared_ptr<HttpReply> reply) {
  std::vector<const RowKind*> kinds;
  for (const std::string& name : request.kinds) {
    kinds.push_back(FindRowKind(name));
    if (kinds.back() == nullptr)
      return InvalidArgument("There are no rows of '", name,
                             "': jobs, pods, nodes, experiments, trials and events are known");
  }
  reply->Start(200, "application/x-ndjson");
  auto feed = std::make_unique<Feed>(std::move(store), std::move(reply));
  for (const RowKind* const kind : kinds) feed->Follow(*kind, request);
  return feed;
}

std::unique_ptr<PageStream> StartLog(std::shared_ptr<KubernetesStore> store, const ObjectName& pod,
                                     const LogOptions& options, std::shared_ptr<HttpReply> reply) {
  return std::make_unique<Log>(std::move(store), pod, options, std::move(reply));
}

HttpResponse PageError(const Status& status) {
  const Json object = StatusObject(status);
  Json fields = Json::MakeArray();
  for (const Json& cause : ListField(object, {"details", "causes"})) {
    Json field;
    field.Set("field", StringField(cause, {"field"}));
    field.Set("message", StringField(cause, {"message"}));
    fields.Append(std::move(field));
  }
  Json json;
  json.Set("error", std::string(status.message()));
  json.Set("code", HttpCodeOf(status));
  json.Set("fields", std::move(fields));
  HttpResponse response = PageAnswer(json);
  response.status = HttpCodeOf(status);
  return response;
}

HttpResponse PageAnswer(const Json& json) {
  HttpResponse response;
  response.content_type = "application/json";
  response.body = json.Dump();
  response.headers.emplace_back("Cache-Control", "no-store");
  AddPageHeaders(&response);
  return response;
}

}  // namespace weft::platform
