// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/watch_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/synchronization/mutex.h"

#include "platform/apiserver/object_requests.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kDefaultTimeout = absl::Minutes(30);

// Lives as long as the reply's OnClose and the watch's sink.
class WatchStream {
 public:
  WatchStream(ApiRequest request, std::shared_ptr<HttpReply> reply, const Clock* clock)
      : request_(std::move(request)),
        wants_bookmarks_(request_.Flag("allowWatchBookmarks")),
        clock_(clock),
        reply_(std::move(reply)) {}

  // The sink: called under the store's lock.
  void OnEvent(const WatchEvent& event) {
    static constexpr const char* kNames[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"};
    if (event.kind == WatchEvent::Kind::kBookmark && !wants_bookmarks_) return;
    Json line;
    line.Set("type", kNames[static_cast<int>(event.kind)]);
    if (event.kind == WatchEvent::Kind::kError) {
      line.Set("object", StatusObject(event.error));
    } else if (event.kind == WatchEvent::Kind::kBookmark) {
      line.Set("object", Bookmark(event.object));
    } else if (request_.form == AnswerForm::kTable) {
      // Columns stand in the first table only.
      line.Set("object", MakeTable(*request_.path.type, {event.object}, clock_->Now(),
                                   !std::exchange(has_columns_, true), request_.row_object));
    } else {
      line.Set("object", AnswerObject(request_, event.object, clock_->Now()));
    }
    Emit(absl::StrCat(line.Dump(), "\n"));
    if (event.kind == WatchEvent::Kind::kError) reply_->Finish();
  }

  // The head goes out once it is known that there is a watch; events may have come before.
  void Begin() {
    absl::MutexLock lock(&mutex_);
    reply_->Start(200, "application/json");
    reply_->Write(early_);
    early_.clear();
    has_begun_ = true;
  }

  void Attach(std::unique_ptr<Watch> watch) {
    absl::MutexLock lock(&mutex_);
    if (!is_over_) watch_ = std::move(watch);
    // Else it ends here.
  }
  void End() {
    std::unique_ptr<Watch> watch;
    {
      absl::MutexLock lock(&mutex_);
      is_over_ = true;
      watch = std::move(watch_);
    }
  }
  void Finish() { reply_->Finish(); }
  HttpReply& reply() { return *reply_; }

 private:
  void Emit(const std::string& line) {
    absl::MutexLock lock(&mutex_);
    if (has_begun_) {
      reply_->Write(line);
    } else {
      early_.append(line);
    }
  }

  Json Bookmark(const ObjectPtr& object) {
    if (request_.form == AnswerForm::kTable) {
      Json table = MakeTable(*request_.path.type, {}, clock_->Now(),
                             !std::exchange(has_columns_, true), RowObject::kNone);
      SetField(&table, {"metadata", "resourceVersion"}, RevisionOf(*object));
      return table;
    }
    return *InVersion(request_, object);
  }

  const ApiRequest request_;
  const bool wants_bookmarks_;
  const Clock* const clock_;
  const std::shared_ptr<HttpReply> reply_;
  bool has_columns_ = false;  // of the sink, which runs one at a time
  absl::Mutex mutex_;
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;
  std::string early_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Watch> watch_ ABSL_GUARDED_BY(mutex_);
};

StatusOr<WatchOptions> ReadWatchOptions(const ApiRequest& request) {
  WatchOptions options;
  options.namespace_name = request.path.namespace_name;
  options.label_selector = request.Query("labelSelector");
  options.field_selector = request.Query("fieldSelector");
  options.revision = request.Query("resourceVersion");
  if (request.Flag("sendInitialEvents")) {
    // What is there now is newer than any revision that the client may have.
    options.revision.clear();
    options.marks_initial_end = true;
  }
  if (!request.path.name.empty()) {
    options.field_selector = absl::StrCat("metadata.name=", request.path.name);
  }
  return options;
}

}  // namespace

void StreamWatch(ObjectStore* store, const Clock* clock, TimerQueue* timers, ApiRequest request,
                 std::shared_ptr<HttpReply> reply) {
  const StatusOr<WatchOptions> options = ReadWatchOptions(request);
  if (!options.ok()) return reply->Send(ErrorResponse(options.status()));
  absl::Duration timeout = kDefaultTimeout;
  int64_t seconds = 0;
  if (absl::SimpleAtoi(request.Query("timeoutSeconds"), &seconds) && seconds > 0) {
    timeout = std::min(timeout, absl::Seconds(seconds));
  }
  const ResourceType& type = *request.path.type;
  const auto stream = std::make_shared<WatchStream>(std::move(request), std::move(reply), clock);
  StatusOr<std::unique_ptr<Watch>> watch = store->StartWatch(
      type, *options, [stream](const WatchEvent& event) { stream->OnEvent(event); });
  if (!watch.ok()) return stream->reply().Send(ErrorResponse(watch.status()));
  stream->Begin();
  const TimerQueue::Id timer =
      timers->Schedule(timeout, [weak = std::weak_ptr<WatchStream>(stream)] {
        if (const auto alive = weak.lock()) alive->Finish();
      });
  stream->Attach(*std::move(watch));
  stream->reply().OnClose([stream, timers, timer] {
    timers->Cancel(timer);
    stream->End();
  });
}

}  // namespace weft::platform
