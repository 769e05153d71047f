// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/shared_links.h"

#include <algorithm>
#include <functional>

namespace weft::platform {

SharedLinks::SharedLinks(const Cluster& cluster)
    : cluster_(cluster),
      num_devices_(cluster.num_devices()),
      num_nodes_(static_cast<int>(cluster.nodes.size())),
      number_of_(static_cast<size_t>(num_devices_) * num_devices_, -1),
      ends_(2 * (num_devices_ + num_nodes_)) {
  const int sinks = num_devices_ + num_nodes_;
  for (int device = 0; device < num_devices_; ++device) {
    const PlanNode& node = cluster.nodes[cluster.devices[device].node];
    ends_[device].capacity = ends_[sinks + device].capacity = node.bus_bytes_per_second;
  }
  for (int node = 0; node < num_nodes_; ++node) {
    ends_[num_devices_ + node].capacity = ends_[sinks + num_devices_ + node].capacity =
        cluster.nodes[node].bytes_per_second;
  }
}

void SharedLinks::Reset() {
  for (const Connection& connection : connections_) {
    number_of_[connection.from * num_devices_ + connection.to] = -1;
    ends_[connection.source].connections.clear();
    ends_[connection.sink].connections.clear();
  }
  connections_.clear();
  due_.clear();
  next_order_ = 0;
}

// Devices of one node meet on its bus, others by their nodes' networks.
int SharedLinks::SourceOf(int from, int to) const {
  const int node = cluster_.devices[from].node;
  return node == cluster_.devices[to].node ? from : num_devices_ + node;
}

int SharedLinks::SinkOf(int from, int to) const {
  return num_devices_ + num_nodes_ + SourceOf(to, from);
}

double SharedLinks::SecondsAtSource(double bytes, int from, int to) const {
  return bytes / ends_[SourceOf(from, to)].capacity;
}

int SharedLinks::Find(int from, int to) {
  int& number = number_of_[from * num_devices_ + to];
  if (number < 0) {
    number = static_cast<int>(connections_.size());
    connections_.push_back(
        {.from = from, .to = to, .source = SourceOf(from, to), .sink = SinkOf(from, to)});
  }
  return number;
}

void SharedLinks::Send(int tensor, double bytes, int from, int to, double delay, double now) {
  const int number = Find(from, to);
  Connection& connection = connections_[number];
  const bool is_idle = connection.head == connection.queue.size();
  connection.queue.push_back({tensor, bytes, delay});
  if (!is_idle) return;
  Begin(number, now);
  connection.rate = 0;
  connection.since = now;
  ends_[connection.source].connections.push_back(number);
  ends_[connection.sink].connections.push_back(number);
  Reshare(connection.source, now);
  Reshare(connection.sink, now);
}

void SharedLinks::Begin(int number, double now) {
  Connection& connection = connections_[number];
  connection.left = connection.queue[connection.head].bytes;
  connection.start = now;
}

void SharedLinks::Reshare(int end, double now) {
  for (const int number : ends_[end].connections) Update(number, now);
}

void SharedLinks::Update(int number, double now) {
  Connection& connection = connections_[number];
  const auto part = [](const End& end) {
    return end.capacity / static_cast<double>(end.connections.size());
  };
  const double rate = std::min(part(ends_[connection.source]), part(ends_[connection.sink]));
  if (rate == connection.rate) return;
  connection.left = std::max(0.0, connection.left - connection.rate * (now - connection.since));
  connection.since = now;
  connection.rate = rate;
  Schedule(number);
}

void SharedLinks::Schedule(int number) {
  Connection& connection = connections_[number];
  due_.push_back({connection.since + connection.left / connection.rate, next_order_++, number,
                  ++connection.version});
  std::push_heap(due_.begin(), due_.end(), std::greater<>());
}

void SharedLinks::DropStale() {
  while (!due_.empty() && due_.front().version != connections_[due_.front().connection].version) {
    std::pop_heap(due_.begin(), due_.end(), std::greater<>());
    due_.pop_back();
  }
}

double SharedLinks::NextEnd() {
  DropStale();
  return due_.empty() ? kNever : due_.front().at;
}

SharedLinks::Transfer SharedLinks::TakeNext() {
  DropStale();
  const Due due = due_.front();
  std::pop_heap(due_.begin(), due_.end(), std::greater<>());
  due_.pop_back();
  Connection& connection = connections_[due.connection];
  const Waiting& done = connection.queue[connection.head];
  const Transfer transfer{done.tensor,      connection.from, connection.to,
                          connection.start, due.at,          done.delay};
  ++connection.version;
  if (++connection.head < connection.queue.size()) {
    Begin(due.connection, due.at);
    connection.since = due.at;
    Schedule(due.connection);
    return transfer;
  }
  connection.queue.clear();
  connection.head = 0;
  connection.rate = 0;
  for (const int end : {connection.source, connection.sink}) {
    std::vector<int>& active = ends_[end].connections;
    active.erase(std::find(active.begin(), active.end(), due.connection));
    Reshare(end, due.at);
  }
  return transfer;
}

}  // namespace weft::platform
