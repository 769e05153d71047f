// SPDX-License-Identifier: Apache-2.0
#include "platform/reconcile/event_recorder.h"

#include "absl/strings/str_format.h"

#include "base/log.h"
#include "platform/object/fields.h"
#include "platform/store/api_error.h"
#include "platform/store/object_time.h"

namespace weft::platform {
namespace {

constexpr size_t kMostKnown = 4096;
constexpr size_t kMostMessageBytes = 1024;

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

void EventRecorder::Record(const Json& object, const std::string& type, const std::string& reason,
                           const std::string& message) {
  const std::string text = message.substr(0, kMostMessageBytes);
  const std::string now = FormatObjectTime(clock_->Now());
  const std::string space = NamespaceOf(object).empty() ? "default" : NamespaceOf(object);
  const Known known =
      Count(absl::StrCat(UidOf(object), "\n", type, "\n", reason, "\n", text), NameOf(object));
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
  for (const char* field : {"apiVersion", "kind"}) {
    SetField(&event, {"involvedObject", field}, StringField(object, {field}));
  }
  for (const char* field : {"name", "namespace", "uid", "resourceVersion"}) {
    SetField(&event, {"involvedObject", field}, StringField(object, {"metadata", field}));
  }
  event.Set("type", type);
  event.Set("reason", reason);
  event.Set("message", text);
  SetField(&event, {"source", "component"}, component_);
  event.Set("firstTimestamp", now);
  event.Set("reportingComponent", component_);
  event.Set("reportingInstance", "");
  status = store_->Create(Events(), space, std::move(event), options).status();
  if (!status.ok()) WEFT_LOG(WARNING) << "An event is lost: " << status.message();
}

}  // namespace weft::platform
