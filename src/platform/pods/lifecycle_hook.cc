// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/lifecycle_hook.h"

#include <utility>

#include "platform/object/fields.h"
#include "platform/pods/probe.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kPeriod = absl::Milliseconds(50);

}  // namespace

std::unique_ptr<LifecycleHook> LifecycleHook::Begin(const Json& container, const char* name,
                                                    const ContainerCommand& command,
                                                    absl::Duration longest, ProcessGuard* guard,
                                                    ThreadPool* pool, absl::Time now) {
  const Json* const written = FindField(container, {"lifecycle", name});
  if (written == nullptr || pool == nullptr) return nullptr;
  std::unique_ptr<LifecycleHook> hook(new LifecycleHook());
  hook->due_ = now + kPeriod;
  if (FindField(*written, {"sleep"}) != nullptr) {
    hook->wakes_ = now + absl::Seconds(IntField(*written, {"sleep", "seconds"}));
    return hook;
  }
  std::optional<ProbeSpec> spec = ReadAction(container, *written);
  if (!spec.has_value()) return nullptr;
  spec->timeout = longest;
  hook->is_unwanted_ = std::make_shared<std::atomic<bool>>(false);
  spec->is_unwanted = hook->is_unwanted_;
  hook->result_ = std::make_shared<Result>();
  pool->Schedule([spec = *std::move(spec), command, guard, result = hook->result_] {
    Status status = TryProbe(spec, command, guard);
    absl::MutexLock lock(&result->mutex);
    result->status = std::move(status);
  });
  return hook;
}

// What still runs of it ends.
LifecycleHook::~LifecycleHook() {
  if (is_unwanted_ != nullptr) is_unwanted_->store(true);
}

std::optional<Status> LifecycleHook::Outcome(absl::Time now) {
  due_ = now + kPeriod;
  if (result_ == nullptr)
    return now >= wakes_ ? std::optional<Status>(absl::OkStatus()) : std::nullopt;
  absl::MutexLock lock(&result_->mutex);
  return result_->status;
}

}  // namespace weft::platform
