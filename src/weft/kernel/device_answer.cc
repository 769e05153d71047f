// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/device_answer.h"

#include <utility>

#include "weft/kernel/device.h"

namespace weft {

bool DeviceAnswer::Begin(const StepEnvironment& step, std::string what) {
  absl::MutexLock lock(&mutex_);
  const bool registered =
      step.cancellation->Register(&token_, [self = weak_from_this()](const Status& why) {
        if (const auto alive = self.lock()) alive->Tell(why);
      });
  if (!registered) return false;
  cancellation_ = step.cancellation;
  if (step.waits != nullptr) {
    WaitSubject subject{step.device->name(), std::move(what), ""};
    wait_ = step.waits->Begin(std::move(subject), step.step_id);
  }
  return true;
}

void DeviceAnswer::Tell(Status status) {
  if (told_.exchange(true)) return;
  threads_.Schedule([self = shared_from_this(), status = std::move(status)]() mutable {
    {
      absl::MutexLock lock(&self->mutex_);
      self->wait_.End();
      if (self->cancellation_ != nullptr) self->cancellation_->Deregister(self->token_);
    }
    Done done = std::move(self->done_);
    done(std::move(status));
  });
}

}  // namespace weft
