// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/event_recorder.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"

#include "base/log.h"
#include "net/utf8.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr size_t kMostKnown = 4096;
constexpr size_t kMostMessageBytes = 1024;
constexpr size_t kMostWaiting = 100000;
constexpr absl::Duration kLastWords = absl::Seconds(2);

}  // namespace

EventRecorder::Known EventRecorder::Count(const std::string& key, const std::string& object_name) {
  absl::MutexLock lock(&mutex_);
  Known& entry = known_[key];
  if (entry.count++ == 0) {
    // Unique over restarts by the time, within one by the number.
    entry.name = absl::StrFormat("%s.%x%04x", object_name, absl::ToUnixNanos(clock_->Now()),
                                 sequence_++ & 0xffff);
    order_.push_back(key);
  }
  const Known known = entry;
  if (order_.size() > kMostKnown) {
    known_.erase(order_.front());
    order_.pop_front();
  }
  return known;
}

EventRecorder::~EventRecorder() {
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  thread_.reset();
}

void EventRecorder::Start() {
  thread_ = std::make_unique<Thread>("events", [this] { Run(); });
}

void EventRecorder::Run() {
  absl::Time give_up = absl::InfiniteFuture();
  for (;;) {
    Entry entry;
    {
      absl::MutexLock lock(&mutex_);
      const auto has_work = [this] {
        mutex_.AssertReaderHeld();
        return is_stopping_ || !waiting_.empty();
      };
      mutex_.Await(absl::Condition(&has_work));
      if (waiting_.empty()) return;
      if (is_stopping_ && give_up == absl::InfiniteFuture()) give_up = absl::Now() + kLastWords;
      if (absl::Now() > give_up) {
        WEFT_LOG(WARNING) << waiting_.size() << " events are lost: the program ends";
        return;
      }
      entry = std::move(waiting_.front());
      waiting_.pop_front();
    }
    Write(entry);
  }
}

void EventRecorder::Record(const Json& object, const std::string& type, const std::string& reason,
                           const std::string& message) {
  // On one line: tables show it.
  const std::string line = absl::StrReplaceAll(message, {{"\n", "; "}});
  Entry entry{Json::MakeObject(), type, reason, std::string(CutUtf8(line, kMostMessageBytes)),
              clock_->Now()};
  for (const char* field : {"apiVersion", "kind"}) {
    entry.involved.Set(field, StringField(object, {field}));
  }
  for (const char* field : {"name", "namespace", "uid", "resourceVersion"}) {
    entry.involved.Set(field, StringField(object, {"metadata", field}));
  }
  if (thread_ == nullptr) return Write(entry);
  absl::MutexLock lock(&mutex_);
  if (waiting_.size() < kMostWaiting) {
    waiting_.push_back(std::move(entry));
  } else {
    WEFT_LOG_EVERY(WARNING, absl::Seconds(30)) << "Events are lost: too many wait to be written";
  }
}

void EventRecorder::Write(const Entry& entry) {
  const std::string name = StringField(entry.involved, {"name"});
  const std::string held_in = StringField(entry.involved, {"namespace"});
  const std::string space = held_in.empty() ? "default" : held_in;
  const std::string now = FormatObjectTime(entry.at);
  const Known known = Count(absl::StrCat(StringField(entry.involved, {"uid"}), "\n", entry.type,
                                         "\n", entry.reason, "\n", entry.text),
                            name);
  Json event;
  event.Set("count", known.count);
  event.Set("lastTimestamp", now);
  WriteOptions options;
  options.is_strict = false;
  Status status = absl::OkStatus();
  if (known.count > 1) {
    status =
        store_->Patch(Events(), {space, known.name}, PatchKind::kMerge, event, options).status();
    if (!IsObjectNotFound(status)) {
      if (!status.ok()) WEFT_LOG(WARNING) << "An event is lost: " << status.message();
      return;
    }
  }
  event.Set("apiVersion", "v1");
  event.Set("kind", "Event");
  SetField(&event, {"metadata", "name"}, known.name);
  SetField(&event, {"metadata", "namespace"}, space);
  event.Set("involvedObject", entry.involved);
  event.Set("type", entry.type);
  event.Set("reason", entry.reason);
  event.Set("message", entry.text);
  SetField(&event, {"source", "component"}, component_);
  event.Set("firstTimestamp", now);
  event.Set("reportingComponent", component_);
  event.Set("reportingInstance", "");
  status = store_->Create(Events(), space, std::move(event), options).status();
  if (!status.ok()) WEFT_LOG(WARNING) << "An event is lost: " << status.message();
}

}  // namespace weft::platform
