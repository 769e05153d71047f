// SPDX-License-Identifier: Apache-2.0
// What a container does right after its start, and before it is asked to end.
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/status.h"
#include "base/subprocess.h"
#include "base/threads.h"
#include "net/json.h"
#include "platform/pods/container_environment.h"

namespace weft::platform {

// One run of a hook, on the pool, which it borrows. Not thread-safe.
class LifecycleHook {
 public:
  // Begins `name`, "postStart" or "preStop", of the container; null when it has none. It has failed
  // when it takes longer than `longest`.
  static std::unique_ptr<LifecycleHook> Begin(const Json& container, const char* name,
                                              const ContainerCommand& command,
                                              absl::Duration longest, ProcessGuard* guard,
                                              ThreadPool* pool, absl::Time now);
  ~LifecycleHook();
  LifecycleHook(const LifecycleHook&) = delete;
  LifecycleHook& operator=(const LifecycleHook&) = delete;
  // None: it goes on.
  std::optional<Status> Outcome(absl::Time now);
  // When to ask again.
  absl::Time due() const { return due_; }

 private:
  LifecycleHook() = default;
  struct Result {
    absl::Mutex mutex;
    std::optional<Status> status ABSL_GUARDED_BY(mutex);
  };
  absl::Time wakes_ = absl::InfinitePast();  // of a sleep
  absl::Time due_;
  std::shared_ptr<Result> result_;  // shared with the pool; null: a sleep
  std::shared_ptr<std::atomic<bool>> is_unwanted_;
};

}  // namespace weft::platform
