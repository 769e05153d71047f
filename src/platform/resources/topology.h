// SPDX-License-Identifier: Apache-2.0
// Pods beside pods: affinity, anti-affinity and spread over zones, racks and nodes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "platform/resources/cluster_state.h"
#include "platform/resources/fit.h"

namespace weft::platform {

// What the other pods of the cluster mean for one pod. Made for one decision: it looks at all pods
// once, unless nobody asks for anything of the kind. Borrows the state.
class TopologyCheck {
 public:
  TopologyCheck(const ClusterState& state, const PodNeeds& needs);

  bool is_trivial() const { return is_trivial_; }
  // kNone, kSpread, kAffinity or kAntiAffinity.
  Misfit Check(int node) const;
  // Weights of preferred terms that hold there, and the skew that "ScheduleAnyway" would lessen.
  double Preference(int node) const;

 private:
  using Counts = std::map<std::string, int64_t>;  // by the value of the topology key
  const std::string* ValueOf(int node, const std::string& key) const;
  Counts CountPods(const PodTerm& term, const std::string& key) const;
  Misfit CheckSpread(const NodeDescription& node) const;
  Misfit CheckAffinity(int node) const;

  const ClusterState& state_;
  const PodNeeds& needs_;
  bool is_trivial_ = true;
  std::vector<Counts> spread_;  // of each constraint; all eligible values are there
  std::vector<Counts> affinity_;
  std::vector<Counts> anti_affinity_;
  std::vector<Counts> preferred_;
  // Key and value of places where a pod is that does not want this one near.
  std::vector<std::pair<std::string, std::string>> refused_;
};

// The pod is one that the term means.
bool Means(const PodTerm& term, const PodNeeds& pod);

}  // namespace weft::platform
