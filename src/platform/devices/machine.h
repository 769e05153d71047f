// SPDX-License-Identifier: Apache-2.0
// What a machine has: processors, memory, GPUs, RDMA adapters, as the kernel's files tell it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "net/json.h"
#include "platform/devices/nvml.h"
#include "platform/resources/processor_topology.h"

namespace weft::platform {

struct NumaNode {
  int number = 0;
  std::vector<int> processors;
  int64_t memory = 0;  // bytes
};

struct Cache {
  int level = 0;
  std::string kind;  // Data, Instruction, Unified
  int64_t bytes = 0;
  std::vector<int> processors;  // that share it
};

struct HugePages {
  int64_t page_bytes = 0;
  int64_t count = 0;
};

struct RdmaAdapter {
  std::string name;        // "mlx5_0"
  std::string link_layer;  // InfiniBand, Ethernet; of its first port
  int ports = 0;
  int active_ports = 0;
  std::string rate;  // "200 Gb/sec (4X HDR)"
  int numa_node = -1;
  std::vector<std::string> files;  // that a container needs for it: "/dev/infiniband/uverbs0"
};

struct Machine {
  int sockets = 0;
  int cores = 0;       // with a unit for arithmetic of their own
  int processors = 0;  // that are on line
  std::map<std::pair<int64_t, int64_t>, std::vector<int>> core_threads;  // by socket and core
  std::vector<NumaNode> numa_nodes;
  std::vector<Cache> caches;  // of level 2 and up, each once
  int64_t memory = 0;         // bytes
  std::vector<HugePages> huge_pages;
  std::vector<DriverGpu> gpus;
  std::vector<RdmaAdapter> rdma;
  std::vector<std::string> driver_files;  // that a container needs for its GPUs
};

// Reads ROOT/sys, ROOT/proc and ROOT/dev; "" is this machine. What is not there or makes no sense
// is left out. `nvml` is the library of the driver, "" its usual name.
Machine ReadMachine(const std::string& root = "", const std::string& nvml = "");

// The same with its devices as they are now: a quick look, for what comes and goes. What is not
// there any more stays, as lost, where it stood: who has it is told, and the others keep their
// numbers.
Machine LookAgain(const Machine& before, const std::string& root = "",
                  const std::string& nvml = "");

// A Node object with labels, annotations and allocatable amounts of it, under the names that are in
// use and the old ones (alpha.kubernetes.io/nvidia-gpu, alpha.kubernetes.io/infiniBand).
Json DescribeAsNode(const Machine& machine, const std::string& name);

// Which of its processors are near each other.
ProcessorTopology TopologyOf(const Machine& machine);

// "0-3,8" as numbers; what is none of that is left out.
std::vector<int> ParseProcessorList(const std::string& text);

}  // namespace weft::platform
