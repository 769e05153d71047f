// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/step_simulator.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace weft::platform {

StepSimulator::StepSimulator(const PlacementProblem& problem)
    : problem_(problem),
      graph_(problem.graph()),
      num_devices_(problem.num_devices()),
      links_(problem.cluster()),
      place_(graph_.num_ops()),
      ready_(num_devices_),
      by_place_(graph_.num_ops()) {
  std::iota(by_place_.begin(), by_place_.end(), 0);
  std::stable_sort(by_place_.begin(), by_place_.end(),
                   [&](int a, int b) { return problem.ranks()[a] > problem.ranks()[b]; });
  for (size_t i = 0; i < by_place_.size(); ++i) place_[by_place_[i]] = static_cast<int>(i);
}

void StepSimulator::Push(Event event) {
  event.order = next_order_++;
  events_.push_back(event);
  std::push_heap(events_.begin(), events_.end(), std::greater<>());
}

void StepSimulator::MakeReady(int op, double now) {
  const int device = (*assignment_)[problem_.unit_of(op)];
  std::vector<int>& ready = ready_[device];
  ready.push_back(place_[op]);
  std::push_heap(ready.begin(), ready.end(), std::greater<>());
  if (!is_running_[device]) StartNext(device, now);
}

void StepSimulator::StartNext(int device, double now) {
  std::vector<int>& ready = ready_[device];
  is_running_[device] = !ready.empty();
  if (ready.empty()) return;
  std::pop_heap(ready.begin(), ready.end(), std::greater<>());
  const int op = by_place_[ready.back()];
  ready.pop_back();
  const double end = now + problem_.seconds(op, device);
  Push({.at = end, .op = op, .device = device});
  if (record_ == nullptr) return;
  record_->device_busy[device] += end - now;
  record_->ops.push_back({op, device, now, end});
}

void StepSimulator::Send(int tensor, int from, double now) {
  const StepTensor& sent = graph_.tensors[tensor];
  const Cluster& cluster = problem_.cluster();
  for (const int consumer : sent.consumers) {
    const int to = (*assignment_)[problem_.unit_of(consumer)];
    if (sent_to_[to] == tensor) continue;
    sent_to_[to] = tensor;
    if (to == from) {
      Arrive(tensor, to, now);
      continue;
    }
    const double latency = problem_.TransferSeconds(0, from, to) + sent.delay;
    if (sent.bytes <= 0) {
      Push({.at = now + latency, .tensor = tensor, .device = to});
      continue;
    }
    links_.Send(tensor, sent.bytes, from, to, latency, now);
    if (record_ == nullptr) continue;
    record_->bytes_moved += sent.bytes;
    const int node = cluster.devices[from].node;
    if (node == cluster.devices[to].node) continue;
    record_->node_sent[node] += sent.bytes;
    record_->node_sending[node] += links_.SecondsAtSource(sent.bytes, from, to);
  }
}

void StepSimulator::EndTransfer() {
  const SharedLinks::Transfer ended = links_.TakeNext();
  const double arrival = ended.end + ended.delay;
  Push({.at = arrival, .tensor = ended.tensor, .device = ended.to});
  if (record_ != nullptr)
    record_->transfers.push_back({ended.tensor, ended.from, ended.to, ended.start, arrival});
}

void StepSimulator::Arrive(int tensor, int device, double now) {
  for (const int consumer : graph_.tensors[tensor].consumers) {
    if ((*assignment_)[problem_.unit_of(consumer)] != device) continue;
    if (--waiting_[consumer] == 0) MakeReady(consumer, now);
  }
}

double StepSimulator::Play(const Assignment& assignment, double enough, SimulatedStep* record) {
  assignment_ = &assignment;
  record_ = record;
  next_order_ = 0;
  waiting_.resize(graph_.num_ops());
  for (int op = 0; op < graph_.num_ops(); ++op)
    waiting_[op] = static_cast<int>(graph_.ops[op].inputs.size());
  for (std::vector<int>& ready : ready_) ready.clear();
  is_running_.assign(num_devices_, 0);
  links_.Reset();
  sent_to_.assign(num_devices_, -1);
  events_.clear();
  // All that may start at once stands ready before a device takes its first.
  std::fill(is_running_.begin(), is_running_.end(), 1);
  for (int op = 0; op < graph_.num_ops(); ++op) {
    if (waiting_[op] == 0) MakeReady(op, 0);
  }
  for (int device = 0; device < num_devices_; ++device) StartNext(device, 0);
  double now = 0;
  while (true) {
    const double next_event = events_.empty() ? SharedLinks::kNever : events_.front().at;
    const double next_transfer = links_.NextEnd();
    if (std::min(next_event, next_transfer) == SharedLinks::kNever) break;
    if (next_transfer < next_event) {
      now = next_transfer;
      if (now > enough) return now;
      EndTransfer();
      continue;
    }
    std::pop_heap(events_.begin(), events_.end(), std::greater<>());
    const Event event = events_.back();
    events_.pop_back();
    now = event.at;
    if (now > enough) return now;
    if (event.tensor >= 0) {
      Arrive(event.tensor, event.device, now);
      continue;
    }
    // Readers on this device become ready before the next is chosen.
    for (const int tensor : graph_.ops[event.op].outputs) Send(tensor, event.device, now);
    StartNext(event.device, now);
  }
  return now;
}

double StepSimulator::Seconds(const Assignment& assignment, double enough) {
  return Play(assignment, enough, nullptr);
}

SimulatedStep StepSimulator::Run(const Assignment& assignment) {
  SimulatedStep step;
  const size_t nodes = problem_.cluster().nodes.size();
  step.device_busy.assign(num_devices_, 0);
  step.device_bytes.assign(num_devices_, 0);
  step.node_sent.assign(nodes, 0);
  step.node_sending.assign(nodes, 0);
  for (int unit = 0; unit < problem_.num_units(); ++unit)
    step.device_bytes[assignment[unit]] += problem_.unit_bytes(unit);
  step.seconds = Play(assignment, 1e300, &step);
  std::stable_sort(step.ops.begin(), step.ops.end(),
                   [](const StepSlice& a, const StepSlice& b) { return a.start < b.start; });
  return step;
}

}  // namespace weft::platform
