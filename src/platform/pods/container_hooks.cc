// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/container_hooks.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <signal.h>

#include "absl/memory/memory.h"

#include "platform/object/pod_view.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kLongestAfterStart = absl::Minutes(10);

}  // namespace

std::unique_ptr<ContainerHooks> ContainerHooks::Begin(const Json& container,
                                                      const ContainerCommand& command,
                                                      ProcessGuard* guard, ThreadPool* pool,
                                                      absl::Time now) {
  if (!ContainerView(container).has_hooks()) return nullptr;
  auto hooks = absl::WrapUnique(new ContainerHooks(command, guard, pool));
  hooks->after_start_ =
      LifecycleHook::Begin(container, "postStart", command, kLongestAfterStart, guard, pool, now);
  return hooks;
}

int ContainerHooks::AskToEnd(const Json& container, int signal, absl::Duration grace,
                             absl::Time now) {
  after_start_ = nullptr;
  // Asked again it gets the signal, unless it still has time before that.
  if (std::exchange(is_asked_, true)) return before_end_ == nullptr ? signal : 0;
  signal_ = signal;
  before_end_ = LifecycleHook::Begin(container, "preStop", command_, grace, guard_, pool_, now);
  return before_end_ == nullptr ? signal : 0;
}

ContainerHooks::Outcome ContainerHooks::Step(absl::Duration grace, absl::Time now) {
  Outcome outcome;
  if (after_start_ != nullptr) {
    const std::optional<Status> done = after_start_->Outcome(now);
    if (done.has_value()) {
      after_start_ = nullptr;
      outcome.post_start = *done;
      if (!done->ok()) kill_time_ = now + grace;
    }
  }
  if (before_end_ != nullptr) {
    const std::optional<Status> done = before_end_->Outcome(now);
    if (done.has_value()) {
      before_end_ = nullptr;
      outcome.pre_stop = *done;
      outcome.signal = signal_;
    }
  }
  if (now >= kill_time_) outcome.signal = SIGKILL;
  return outcome;
}

absl::Time ContainerHooks::due() const {
  absl::Time due = kill_time_;
  for (const auto* const hook : {&after_start_, &before_end_})
    if (*hook != nullptr) due = std::min(due, (*hook)->due());
  return due;
}

}  // namespace weft::platform
