// SPDX-License-Identifier: Apache-2.0
#include "weft/rendezvous/step_rendezvous.h"

#include "absl/strings/match.h"

namespace weft::rendezvous {

EdgeKey EdgeKey::Of(const RendezvousKey& key) {
  EdgeKey edge{.number = key.number, .frame = key.frame, .iteration = key.iteration};
  if (key.number < 0) {
    edge.names = absl::StrCat(key.send_device, ";", key.receive_device, ";", key.edge);
  }
  return edge;
}

// The prefix ends in a slash: task 1 is not task 10.
StepRendezvous::StepRendezvous(int64_t step, std::string task, TensorSink* sink,
                               WaitRegistry* waits)
    : step_(step),
      device_prefix_(absl::StrCat(task, "/")),
      sink_(sink),
      waits_(waits),
      pulls_(std::make_shared<Cancellation>()) {}

void StepRendezvous::PullFrom(TensorSource* source) {
  absl::MutexLock lock(&mutex_);
  source_ = source;
}

Status StepRendezvous::Send(const RendezvousKey& key, const Tensor& tensor, bool is_dead) {
  if (absl::StartsWith(key.receive_device, device_prefix_)) {
    return Deliver(EdgeKey::Of(key), tensor, is_dead);
  }
  bool is_pulled = false;
  {
    absl::MutexLock lock(&mutex_);
    WEFT_RETURN_IF_ERROR(status_);
    is_pulled = source_ != nullptr;
  }
  if (is_pulled) return Deliver(EdgeKey::Of(key), tensor, is_dead);
  if (sink_ == nullptr) {
    return Internal("Tensor for ", key.receive_device, ", but nothing leads there from ",
                    device_prefix_);
  }
  return sink_->Push(step_, key, tensor, is_dead);
}

Status StepRendezvous::Deliver(const EdgeKey& key, Tensor tensor, bool is_dead) {
  ReceiveCallback receiver;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
    const auto [it, added] = slots_.try_emplace(key);
    Slot& slot = it->second;
    if (!slot.receiver) {
      if (!added) return InvalidArgument("Tensor came twice: edge ", key.number, " ", key.names);
      slot.tensor = std::move(tensor);
      slot.is_dead = is_dead;
      slot.has_value = true;
      return absl::OkStatus();
    }
    receiver = std::move(slot.receiver);
    slots_.erase(it);
  }
  receiver(std::move(tensor), is_dead);
  return absl::OkStatus();
}

void StepRendezvous::Receive(const RendezvousKey& key, ReceiveCallback done) {
  Tensor tensor;
  bool is_dead = false;
  Status failed;
  TensorSource* source = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    failed = status_;
    const bool is_elsewhere = !absl::StartsWith(key.send_device, device_prefix_);
    if (failed.ok() && is_elsewhere && !slots_.contains(EdgeKey::Of(key))) source = source_;
    if (failed.ok() && source == nullptr) {
      const auto [it, added] = slots_.try_emplace(EdgeKey::Of(key));
      Slot& slot = it->second;
      if (added) {
        slot.receiver = std::move(done);
        if (waits_ != nullptr && key.wait != nullptr) slot.wait = waits_->Begin(key.wait, step_);
        return;
      }
      if (slot.has_value) {
        tensor = std::move(slot.tensor);
        is_dead = slot.is_dead;
        slots_.erase(it);
      } else {
        failed = Internal("Two receivers wait for one tensor: ", key.ToString());
      }
    }
  }
  if (source != nullptr) {
    Pull(source, key, std::move(done));
  } else if (!failed.ok()) {
    done(failed, false);
  } else {
    done(std::move(tensor), is_dead);
  }
}

void StepRendezvous::Pull(TensorSource* source, const RendezvousKey& key, ReceiveCallback done) {
  Wait wait;
  if (waits_ != nullptr && key.wait != nullptr) wait = waits_->Begin(key.wait, step_);
  source->Pull(step_, key, pulls_,
               [done = std::move(done), wait = std::move(wait)](StatusOr<Tensor> tensor,
                                                                bool is_dead) mutable {
                 wait.End();
                 done(std::move(tensor), is_dead);
               });
}

void StepRendezvous::Abort(const Status& reason) {
  absl::flat_hash_map<EdgeKey, Slot> slots;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok()) return;
    status_ = reason;
    slots.swap(slots_);
  }
  pulls_->Cancel(reason);
  for (auto& [key, slot] : slots) {
    slot.wait.End();
    if (slot.receiver) slot.receiver(reason, false);
  }
}

Status StepRendezvous::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

}  // namespace weft::rendezvous
