// SPDX-License-Identifier: Apache-2.0
// Splits a placed graph where its edges cross from one place to another.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/graph/graph.h"

namespace weft::compile {

struct PartitionOptions {
  // The place of a device: its task, or itself.
  std::function<std::string(const std::string& device)> place_of;
  // The incarnation of a device, for keys that a restarted task does not fit.
  std::function<uint64_t(const std::string& device)> incarnation_of;
  // The number of the first crossing edge; each takes the next. Numbers are unique in a step.
  int64_t first_edge = 0;
};

// The attribute of _Send and _Recv nodes that holds their edge's number.
inline constexpr char kEdgeAttr[] = "_edge";

struct Partitioned {
  std::map<std::string, Graph> parts;  // by place; the nodes keep names and devices
  int64_t next_edge = 0;
};

// The task of a placed node: its device's name without the device.
inline absl::string_view TaskOf(const Node& node) {
  const absl::string_view device = node.assigned_device();
  return device.substr(0, device.find("/device:"));
}

// Where a tensor crosses, a _Send stands on the source's device and a _Recv on the reader's, one
// pair for all readers at a place. A control edge crosses as an empty tensor, or with a tensor that
// crosses anyway. A reference crosses as its value, read after what the reader waits for on the
// source's side. A loop of Enter and Exit nodes may span places: each then drives its part by
// itself (drive_loops.h). InvalidArgument for a reference input from another place.
StatusOr<Partitioned> PartitionGraph(const Graph& graph, const PartitionOptions& options);

}  // namespace weft::compile
