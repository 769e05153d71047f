// SPDX-License-Identifier: Apache-2.0
// Tensors on their way between devices, which share the links.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "platform/placement/cluster.h"

namespace weft::platform {

// From one device to another tensors go one after another, as frames of a connection do.
// Connections that leave or enter by one end (a node's network, a device's place on its node's bus)
// have equal parts of what it carries: a fluid model of TCP's fairness, in which what one of them
// cannot use, because its other end has less for it, is not given to the rest. Not thread-safe.
class SharedLinks {
 public:
  explicit SharedLinks(const Cluster& cluster);

  struct Transfer {
    int tensor = 0;
    int from = 0;  // devices
    int to = 0;
    double start = 0;  // when its first byte left
    double end = 0;    // when its last byte was through, without latency
    double delay = 0;  // to be added to that
  };

  static constexpr double kNever = 1e300;

  void Reset();
  // A tensor of more than no bytes leaves; times never go back.
  void Send(int tensor, double bytes, int from, int to, double delay, double now);
  // When the next transfer ends; kNever if none is on its way. If `Send` is called until then, it
  // may be another time.
  double NextEnd();
  // Takes that transfer out.
  Transfer TakeNext();
  // What an end carries of `bytes` from one device to another takes so many seconds.
  double SecondsAtSource(double bytes, int from, int to) const;

 private:
  struct Waiting {
    int tensor = 0;
    double bytes = 0;
    double delay = 0;
  };
  struct Connection {
    int from = 0, to = 0;      // devices
    int source = 0, sink = 0;  // ends
    std::vector<Waiting> queue;
    size_t head = 0;   // in the queue, on its way
    double left = 0;   // bytes of it
    double start = 0;  // of it
    double rate = 0;   // bytes a second, since
    double since = 0;
    int64_t version = 0;  // of its end in the heap
  };
  struct End {
    double capacity = 0;
    std::vector<int> connections;  // with something on its way
  };
  struct Due {
    double at = 0;
    int64_t order = 0;
    int connection = 0;
    int64_t version = 0;
    bool operator>(const Due& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };

  int SourceOf(int from, int to) const;
  int SinkOf(int from, int to) const;
  int Find(int from, int to);
  void Begin(int connection, double now);
  // Parts are equal again after a connection has begun or ended.
  void Reshare(int end, double now);
  void Update(int connection, double now);
  void Schedule(int connection);
  void DropStale();

  const Cluster& cluster_;
  const int num_devices_;
  const int num_nodes_;
  std::vector<int> number_of_;  // of a connection, by from * devices + to; -1: none yet
  std::vector<Connection> connections_;
  std::vector<End> ends_;  // sources: devices' on buses, nodes' networks; then sinks alike
  std::vector<Due> due_;   // a heap
  int64_t next_order_ = 0;
};

}  // namespace weft::platform
