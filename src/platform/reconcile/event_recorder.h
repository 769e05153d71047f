// SPDX-License-Identifier: Apache-2.0
// Events that people read with `kubectl describe`.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "base/threads.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Writes core/v1 Events; one that says the same of the same object again becomes a count. An event
// that cannot be written is logged and lost. Thread-safe; borrows store and clock.
//
// Events come after what they tell: once started, a thread of its own writes them, one at a time,
// so that they do not hold up the work; those still unwritten at the end have two seconds.
class EventRecorder {
 public:
  // `component` says who: "tfjob-controller".
  EventRecorder(ObjectStore* store, const Clock* clock, std::string component)
      : store_(store), clock_(clock), component_(std::move(component)) {}

  ~EventRecorder();
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  // Without it Record writes at once.
  void Start();
  // `type` is "Normal" or "Warning".
  void Record(const Json& object, const std::string& type, const std::string& reason,
              const std::string& message);

 private:
  struct Known {
    std::string name;
    int64_t count = 0;
  };
  struct Entry {
    Json involved;
    std::string type;
    std::string reason;
    std::string text;
    absl::Time at;
  };
  Known Count(const std::string& key, const std::string& object_name);
  void Write(const Entry& entry);
  void Run();

  ObjectStore* const store_;
  const Clock* const clock_;
  const std::string component_;
  absl::Mutex mutex_;
  std::map<std::string, Known> known_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> order_ ABSL_GUARDED_BY(mutex_);  // of known_, oldest first
  uint64_t sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Entry> waiting_ ABSL_GUARDED_BY(mutex_);
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<Thread> thread_;
};

}  // namespace weft::platform
