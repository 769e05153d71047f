// SPDX-License-Identifier: Apache-2.0
// A step over devices and links, event by event: an op runs when its inputs are there and its
// device is free; a tensor goes once to each device that reads it, over links that it shares with
// others (shared_links.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "platform/placement/problem.h"
#include "platform/placement/shared_links.h"

namespace weft::platform {

struct StepSlice {
  int op = 0;
  int device = 0;
  double start = 0;
  double end = 0;
};

struct TransferSlice {
  int tensor = 0;
  int from = 0;  // devices
  int to = 0;
  double start = 0;
  double end = 0;
};

struct SimulatedStep {
  double seconds = 0;
  std::vector<double> device_busy;   // seconds
  std::vector<double> device_bytes;  // held, as PlacementProblem counts
  std::vector<double> node_sent;     // bytes that left the node
  std::vector<double> node_sending;  // seconds
  double bytes_moved = 0;            // between devices
  std::vector<StepSlice> ops;        // by start
  std::vector<TransferSlice> transfers;
};

// The same assignment takes the same time, on every machine. Of what is ready on a device, that
// with the longest way to the step's end runs first. One simulator may be used again and again, by
// one thread at a time.
class StepSimulator {
 public:
  explicit StepSimulator(const PlacementProblem& problem);

  // The time of the step alone; stops and returns what is certain once that is more than `enough`.
  double Seconds(const Assignment& assignment, double enough = 1e300);
  SimulatedStep Run(const Assignment& assignment);

 private:
  struct Event {
    double at = 0;
    int64_t order = 0;  // of events at the same time: as they were made
    int op = 0;         // that ends, or
    int tensor = -1;    // that arrives at
    int device = 0;
    bool operator>(const Event& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  double Play(const Assignment& assignment, double enough, SimulatedStep* record);
  void Push(Event event);
  void MakeReady(int op, double now);
  void StartNext(int device, double now);
  void Send(int tensor, int from, double now);
  void EndTransfer();
  void Arrive(int tensor, int device, double now);

  const PlacementProblem& problem_;
  const StepGraph& graph_;
  const int num_devices_;
  SharedLinks links_;
  std::vector<int> place_;  // by rank: 0 is the op with the longest way to the end
  const Assignment* assignment_ = nullptr;
  SimulatedStep* record_ = nullptr;
  int64_t next_order_ = 0;
  std::vector<int> waiting_;             // by op: inputs that are not there
  std::vector<std::vector<int>> ready_;  // by device: a heap of places
  std::vector<int> by_place_;
  std::vector<char> is_running_;  // by device
  std::vector<int> sent_to_;      // by device: the last tensor that went there
  std::vector<Event> events_;     // a heap
};

}  // namespace weft::platform
