// SPDX-License-Identifier: Apache-2.0
// What a node offers, as its Node object tells it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "platform/resources/amounts.h"
#include "platform/resources/label_match.h"

namespace weft::platform {

struct Gpu {
  std::string uuid;
  std::string model;
  int64_t memory = 0;  // bytes; 0: not known, so that no share of it can be had
  int numa_node = -1;
  int island = 0;  // those with direct links to each other have the same
  bool is_healthy = true;
};

struct Taint {
  std::string key;
  std::string value;
  std::string effect;  // NoSchedule, PreferNoSchedule, NoExecute
};

struct NodeDescription {
  std::string name;
  Labels labels;
  std::vector<Taint> taints;
  bool is_unschedulable = false;
  Amounts allocatable;
  std::vector<Gpu> gpus;  // by index
};

// The annotation of a Node that lists its GPUs: [{"model": "...", "memory": "80Gi", ...}, ...] in
// the order of their indices. Without it the allocatable count says how many there are.
inline constexpr char kGpusAnnotation[] = "weft.dev/gpus";
// How many GPUs a node may say that it has, at most.
inline constexpr int64_t kMostGpus = 1024;

StatusOr<NodeDescription> ReadNode(const Json& node, ResourceNames* names);

}  // namespace weft::platform
