// SPDX-License-Identifier: Apache-2.0
// The meeting place of one step at one task.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

#include "base/cancellation.h"
#include "base/waits.h"
#include "weft/kernel/rendezvous.h"

namespace weft::rendezvous {

// Takes what is meant for another task. Thread-safe; must not block.
class TensorSink {
 public:
  virtual ~TensorSink() = default;
  // Sends to the task of `key.receive_device`. An error fails the step.
  virtual Status Push(int64_t step, const RendezvousKey& key, const Tensor& tensor,
                      bool is_dead) = 0;
};

// Asks another task for what it makes. Thread-safe; must not block.
class TensorSource {
 public:
  virtual ~TensorSource() = default;
  // Calls `done` once, maybe before this returns: with the tensor that `key` names, made by the
  // task of `key.send_device`, or with an error, that of `cancellation` among them.
  virtual void Pull(int64_t step, const RendezvousKey& key,
                    std::shared_ptr<Cancellation> cancellation, ReceiveCallback done) = 0;
};

// Names one tensor of a step: the edge, and the iteration of the loop it is in.
struct EdgeKey {
  int64_t number = -1;
  std::string names;  // devices and edge, where there is no number
  uint64_t frame = 0;
  int64_t iteration = 0;

  static EdgeKey Of(const RendezvousKey& key);
  bool operator==(const EdgeKey&) const = default;
  template <typename H>
  friend H AbslHashValue(H h, const EdgeKey& k) {
    return H::combine(std::move(h), k.number, k.names, k.frame, k.iteration);
  }
};

// Thread-safe. Each tensor is given once to one receiver.
class StepRendezvous final : public Rendezvous {
 public:
  // `task` is this task's name as in device names, "/job:ps/replica:0/task:1". `sink` may be null
  // where nothing leaves the task, `waits` where nobody watches. Both must outlive it.
  StepRendezvous(int64_t step, std::string task, TensorSink* sink, WaitRegistry* waits);

  Status Send(const RendezvousKey& key, const Tensor& tensor, bool is_dead) override;
  void Receive(const RendezvousKey& key, ReceiveCallback done) override;
  void Abort(const Status& reason) override;

  // From now on this is a step of TensorFlow's way: what is meant for another task stays here until
  // that asks for it, and what another makes is asked for. `source` must outlive the step.
  void PullFrom(TensorSource* source);
  // A tensor that came from another task. InvalidArgument if it came before.
  Status Deliver(const EdgeKey& key, Tensor tensor, bool is_dead);
  // OK until aborted.
  Status status() const;
  int64_t step() const { return step_; }

 private:
  void Pull(TensorSource* source, const RendezvousKey& key, ReceiveCallback done);

  struct Slot {
    Tensor tensor;
    bool is_dead = false;
    bool has_value = false;
    ReceiveCallback receiver;  // set while one waits
    Wait wait;
  };

  const int64_t step_;
  const std::string device_prefix_;
  TensorSink* const sink_;
  WaitRegistry* const waits_;
  const std::shared_ptr<Cancellation> pulls_;  // shared with calls that outlive the step
  mutable absl::Mutex mutex_;
  TensorSource* source_ ABSL_GUARDED_BY(mutex_) = nullptr;
  Status status_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<EdgeKey, Slot> slots_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace weft::rendezvous
