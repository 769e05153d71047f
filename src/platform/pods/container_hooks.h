// SPDX-License-Identifier: Apache-2.0
// What one run of a container does after its start and before its end, and the signal that follows.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"

#include "base/status.h"
#include "base/subprocess.h"
#include "base/threads.h"
#include "net/json.h"
#include "platform/pods/container_environment.h"
#include "platform/pods/lifecycle_hook.h"

namespace weft::platform {

// Not thread-safe. Borrows guard and pool.
class ContainerHooks {
 public:
  // Which signals the container gets now, and what went wrong.
  struct Outcome {
    int signal = 0;     // 0: none
    Status post_start;  // its hook after the start has failed: it is to end
    Status pre_stop;
  };

  // Begins what follows a start; null when the container has no hooks.
  static std::unique_ptr<ContainerHooks> Begin(const Json& container,
                                               const ContainerCommand& command, ProcessGuard* guard,
                                               ThreadPool* pool, absl::Time now);

  // What follows its start is not done yet.
  bool is_starting() const { return after_start_ != nullptr; }
  // It shall end: what comes before that begins. The signal to send at once, or 0.
  int AskToEnd(const Json& container, int signal, absl::Duration grace, absl::Time now);
  // To be called often while it runs.
  Outcome Step(absl::Duration grace, absl::Time now);
  absl::Time due() const;

 private:
  ContainerHooks(const ContainerCommand& command, ProcessGuard* guard, ThreadPool* pool)
      : command_(command), guard_(guard), pool_(pool) {}

  const ContainerCommand command_;
  ProcessGuard* const guard_;
  ThreadPool* const pool_;
  std::unique_ptr<LifecycleHook> after_start_;
  std::unique_ptr<LifecycleHook> before_end_;
  bool is_asked_ = false;  // to end
  int signal_ = 0;         // that follows before_end_
  absl::Time kill_time_ = absl::InfiniteFuture();
};

}  // namespace weft::platform
