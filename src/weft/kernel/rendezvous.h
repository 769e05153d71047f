// SPDX-License-Identifier: Apache-2.0
// Where a tensor's producer and consumer meet when an edge crosses devices or tasks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"

#include "base/cancellation.h"
#include "base/ref.h"
#include "base/status.h"
#include "base/waits.h"
#include "weft/tensor/tensor.h"

namespace weft {

// Names one edge of a step: devices in full, the edge's name, and the loop frame and iteration.
struct RendezvousKey {
  std::string send_device;
  uint64_t send_incarnation = 0;
  std::string receive_device;
  std::string edge;
  uint64_t frame = 0;
  int64_t iteration = 0;
  // The edge's number where the partitioner gave one: quicker to look up, as good as the names.
  int64_t number = -1;
  // What a receiver waits for, as the watchdog reports it; shared by the waits of all steps.
  std::shared_ptr<const WaitSubject> wait;

  // "send;incarnation as 16 hex digits;receive;edge;frame:iteration".
  std::string ToString() const;
  static StatusOr<RendezvousKey> Parse(absl::string_view text);
};

using ReceiveCallback = absl::AnyInvocable<void(StatusOr<Tensor> tensor, bool is_dead)>;

// One step's meeting place. Thread-safe.
class Rendezvous : public RefCounted {
 public:
  // Never blocks. A dead tensor (untaken branch) carries no value.
  virtual Status Send(const RendezvousKey& key, const Tensor& tensor, bool is_dead) = 0;
  // Calls `done` once: with the tensor, when it is or comes; or with the abort's status.
  virtual void Receive(const RendezvousKey& key, ReceiveCallback done) = 0;
  // Ends the step: every pending and later call fails with `reason` (not OK). The first wins.
  virtual void Abort(const Status& reason) = 0;
};

}  // namespace weft
