// SPDX-License-Identifier: Apache-2.0
// The threads of a controller.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "base/threads.h"
#include "platform/reconcile/informer.h"
#include "platform/reconcile/work_queue.h"

namespace weft::platform {

// One look at the object of a key. The result: look again after this time (infinite: not by
// itself).
using Reconcile = std::function<StatusOr<absl::Duration>(const std::string& key)>;

// Takes keys of the queue once all informers have synced; a failure comes again, later each time.
// Borrows its arguments. The destructor waits for what runs.
class ControllerLoop {
 public:
  ControllerLoop(const std::string& name, WorkQueue* queue, std::vector<Informer*> informers,
                 Reconcile reconcile, int threads);
  ~ControllerLoop();
  ControllerLoop(const ControllerLoop&) = delete;
  ControllerLoop& operator=(const ControllerLoop&) = delete;

  // Works off one key that is ready within `timeout`; false when there was none. What the threads
  // do; simulations do it without them.
  static bool Step(const std::string& name, WorkQueue* queue, const Reconcile& reconcile,
                   absl::Duration timeout);

 private:
  WorkQueue* const queue_;
  std::atomic<bool> stopping_{false};
  std::vector<std::unique_ptr<Thread>> threads_;
};

// "default/digits" and back.
std::string KeyOfObject(const Json& object);
std::pair<std::string, std::string> SplitKey(const std::string& key);

}  // namespace weft::platform
