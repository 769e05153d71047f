// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/cluster.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace weft::platform {
namespace {

constexpr int kMostDevices = 1024;

// Peaks for 32-bit floats by the makers' data sheets.
const DeviceProfile kGpus[] = {
    {"H200", true, 67e12, 4800e9, 141 * kGibibyte, 4e-6},
    {"H100", true, 67e12, 3350e9, 80 * kGibibyte, 4e-6},
    {"A100", true, 19.5e12, 1555e9, 40 * kGibibyte, 4e-6},
    {"A10", true, 31.2e12, 600e9, 24 * kGibibyte, 4e-6},
    {"L4", true, 30.3e12, 300e9, 24 * kGibibyte, 4e-6},
    {"V100", true, 15.7e12, 900e9, 16 * kGibibyte, 5e-6},
    {"P100", true, 9.3e12, 732e9, 16 * kGibibyte, 5e-6},
    {"K80", true, 4.1e12, 240e9, 12 * kGibibyte, 7e-6},
    {"T4", true, 8.1e12, 320e9, 16 * kGibibyte, 5e-6},
};

}  // namespace

DeviceProfile GpuProfile(absl::string_view model) {
  const std::string upper = absl::AsciiStrToUpper(model);
  for (const DeviceProfile& profile : kGpus) {
    if (absl::StrContains(upper, profile.model)) return profile;
  }
  return *std::prev(std::end(kGpus));
}

DeviceProfile CpuProfile(double processors, int64_t memory) {
  // A hyper-thread of 2.5 GHz with two 8-float products a core and cycle; a socket's memory is
  // saturated by about half of its cores.
  return {"cpu", false, 40e9 * processors, std::min(8e9 * processors, 180e9), memory, 1e-6};
}

double Cluster::Bandwidth(int from, int to) const {
  const PlanNode& a = nodes[devices[from].node];
  const PlanNode& b = nodes[devices[to].node];
  return &a == &b ? a.bus_bytes_per_second : std::min(a.bytes_per_second, b.bytes_per_second);
}

double Cluster::Latency(int from, int to) const {
  const PlanNode& a = nodes[devices[from].node];
  const PlanNode& b = nodes[devices[to].node];
  return &a == &b ? a.bus_latency : std::max(a.latency, b.latency);
}

StatusOr<Cluster> MakeCluster(const std::vector<NodeShape>& nodes) {
  if (nodes.empty()) return InvalidArgument("There are no nodes to plan for");
  Cluster cluster;
  for (const NodeShape& shape : nodes) {
    const int node = static_cast<int>(cluster.nodes.size());
    if (!(shape.processors > 0)) {
      return InvalidArgument("Node '", shape.name, "' has no processors: expected more than 0");
    }
    cluster.nodes.push_back({.name = shape.name,
                             .bytes_per_second = shape.gigabits * 1e9 / 8,
                             .latency = 25e-6,
                             .bus_bytes_per_second = shape.gpus > 0 ? 11e9 : 8e9,
                             .bus_latency = 5e-6,
                             .price = shape.price});
    cluster.devices.push_back(
        {absl::StrCat(shape.name, "/cpu:0"), node, CpuProfile(shape.processors, shape.memory)});
    if (shape.gpus < 0 || shape.gpus + cluster.num_devices() > kMostDevices) {
      return InvalidArgument("Node '", shape.name, "': more than ", kMostDevices,
                             " devices, which is the most that is planned for");
    }
    for (int gpu = 0; gpu < shape.gpus; ++gpu) {
      cluster.devices.push_back(
          {absl::StrCat(shape.name, "/gpu:", gpu), node, GpuProfile(shape.gpu_model)});
    }
  }
  cluster.name = absl::StrCat(cluster.nodes.size(), " nodes");
  return cluster;
}

}  // namespace weft::platform
