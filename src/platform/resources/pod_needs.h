// SPDX-License-Identifier: Apache-2.0
// What a pod asks of the node that it runs on, read once from its object.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "platform/resources/amounts.h"
#include "platform/resources/label_match.h"
#include "platform/resources/node_description.h"

namespace weft::platform {

// `count` GPUs of one node, whole ones or the same share of each.
struct GpuNeeds {
  int64_t count = 0;
  int64_t thousandths = 1000;       // of each GPU's time; below 1000 others share it
  int64_t memory = 0;               // bytes of each GPU; not 0: others share it
  std::vector<int> indices;         // exactly these, when there are any
  std::vector<std::string> models;  // any of these, when there are any

  bool is_shared() const { return memory > 0 || thousandths < 1000; }
};

struct Toleration {
  std::string key;  // empty with `is_any_value`: all taints
  std::string value;
  std::string effect;  // empty: all
  bool is_any_value = false;
};
bool Tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);

// Of a node's labels and its name. All hold.
struct NodeTerm {
  std::vector<LabelRequirement> labels;
  std::vector<LabelRequirement> fields;
};
bool Matches(const NodeTerm& term, const NodeDescription& node);

// Other pods that shall be, or shall not be, in the same place (zone, rack, node).
struct PodTerm {
  LabelSelector selector;
  std::vector<std::string> namespaces;
  bool is_all_namespaces = false;
  std::string topology_key;
  int64_t weight = 0;  // of preferred terms
};
struct Spread {
  int64_t max_skew = 1;
  std::string topology_key;
  LabelSelector selector;
  bool is_required = true;  // DoNotSchedule
};

struct PodNeeds {
  std::string namespace_name;
  Labels labels;
  Amounts amounts;  // with one pod slot
  GpuNeeds gpu;
  std::vector<LabelRequirement> node_selector;
  bool has_node_terms = false;
  std::vector<NodeTerm> node_terms;  // one of them holds
  std::vector<std::pair<int64_t, NodeTerm>> preferred_nodes;
  std::vector<Toleration> tolerations;
  std::vector<PodTerm> affinity;
  std::vector<PodTerm> anti_affinity;
  std::vector<PodTerm> preferred_affinity;  // with negative weights for anti-affinity
  std::vector<Spread> spread;
  std::vector<std::string> host_ports;  // "TCP/8080"
};

// Null is nothing. InvalidArgument says which field holds what.
StatusOr<std::shared_ptr<const PodNeeds>> ReadPodNeeds(const Json& pod, ResourceNames* names);

// "0,1,3": the annotation of the printed seed for GPUs by index.
inline constexpr char kGpuSetAnnotation[] = "alpha.kubernetes.io/gpuset";
// InvalidArgument on anything but different numbers with commas between.
StatusOr<std::vector<int>> ParseGpuIndices(absl::string_view text);

}  // namespace weft::platform
