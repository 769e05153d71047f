// SPDX-License-Identifier: Apache-2.0
// What a step may run on: devices on nodes, and the links between them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::platform {

inline constexpr int64_t kGibibyte = int64_t{1} << 30;

// What is known of a kind of device. Peaks, as its data sheet gives them for 32-bit floats.
struct DeviceProfile {
  std::string model;  // "V100", "cpu"
  bool is_gpu = false;
  double flops = 0;             // a second
  double bytes_per_second = 0;  // of its memory
  int64_t memory = 0;           // bytes
  double overhead = 0;          // seconds that the least op takes
};

// One kind of node as clouds offer it, or as a Node object tells it.
struct NodeShape {
  std::string name;
  double processors = 1;
  int64_t memory = 0;  // bytes
  int gpus = 0;
  std::string gpu_model;  // "" or unknown: like a T4
  double gigabits = 10;   // of its network
  double price = 0;       // an hour; 0: not known
};

struct PlanNode {
  std::string name;
  double bytes_per_second = 0;      // of its network, each way
  double latency = 0;               // seconds to another node
  double bus_bytes_per_second = 0;  // between its devices
  double bus_latency = 0;
  double price = 0;  // an hour
};

struct PlanDevice {
  std::string name;  // "node-3/gpu:1"
  int node = 0;
  DeviceProfile profile;
};

// Nodes and their devices; each node has a CPU, which comes before its GPUs.
struct Cluster {
  std::string name;
  std::vector<PlanNode> nodes;
  std::vector<PlanDevice> devices;

  int num_devices() const { return static_cast<int>(devices.size()); }
  double Bandwidth(int from, int to) const;
  double Latency(int from, int to) const;
};

// A GPU by its model's name or a part of it ("NVIDIA Tesla V100-SXM2-16GB"); one that is not known
// counts as a T4.
DeviceProfile GpuProfile(absl::string_view model);
DeviceProfile CpuProfile(double processors, int64_t memory);

// InvalidArgument if there are no nodes, or more devices than can be planned for.
StatusOr<Cluster> MakeCluster(const std::vector<NodeShape>& nodes);

// Shapes of AWS, Azure and GCP by their names ("p3.8xlarge"). NotFound names those that are near.
StatusOr<NodeShape> FindCloudShape(absl::string_view name);
std::vector<NodeShape> CloudShapes();
// "p3.8xlarge*4,c5.9xlarge*2": so many nodes of such shapes.
StatusOr<std::vector<NodeShape>> ParseShapes(absl::string_view text);

}  // namespace weft::platform
