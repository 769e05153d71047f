// SPDX-License-Identifier: Apache-2.0
// How the engine reaches other tasks and time: behind an interface, so that a simulation owns both.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"

#include "proto/weft/collective.pb.h"
#include "weft/tensor/tensor.h"

namespace weft::collective {

using wire::CollectiveMember;
using wire::CollectiveMessage;

// Thread-safe. No method blocks or calls the engine before it returns.
class Network {
 public:
  virtual ~Network() = default;
  // This task, its process and where others reach it; `device` is empty.
  virtual const CollectiveMember& self() const = 0;
  // The bytes of `body` follow each other on the way. Messages to one task keep their order. If it
  // cannot be delivered, the engine's TaskLost is called.
  virtual void Send(const std::string& task, CollectiveMessage message,
                    std::vector<Tensor> body) = 0;
  // Tells how to reach a member's task.
  virtual void Learn(const CollectiveMember& member) = 0;
  // Calls `what` once, after `delay`, unless the network ends before.
  virtual void After(absl::Duration delay, absl::AnyInvocable<void()> what) = 0;
  // This task takes part in an open group from now on: others that form one wait for it.
  virtual void BeRank() {}
  // Runs `what` soon on another thread.
  virtual void Execute(absl::AnyInvocable<void()> what) = 0;
};

}  // namespace weft::collective
