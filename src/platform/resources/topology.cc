// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/topology.h"

#include <algorithm>
#include <limits>

namespace weft::platform {
namespace {

// Nodes that the pod may not use for other reasons do not count for its spread.
bool IsEligible(const NodeDescription& node, const PodNeeds& needs) {
  for (const LabelRequirement& requirement : needs.node_selector) {
    if (!Matches(requirement, node.labels)) return false;
  }
  return !needs.has_node_terms ||
         std::any_of(needs.node_terms.begin(), needs.node_terms.end(),
                     [&](const NodeTerm& term) { return Matches(term, node); });
}

}  // namespace

bool Means(const PodTerm& term, const PodNeeds& pod) {
  const bool is_in_namespace =
      term.is_all_namespaces || std::find(term.namespaces.begin(), term.namespaces.end(),
                                          pod.namespace_name) != term.namespaces.end();
  return is_in_namespace && Matches(term.selector, pod.labels);
}

TopologyCheck::TopologyCheck(const ClusterState& state, const PodNeeds& needs)
    : state_(state), needs_(needs) {
  is_trivial_ = needs.spread.empty() && needs.affinity.empty() && needs.anti_affinity.empty() &&
                needs.preferred_affinity.empty() && state.anti_affinity_count() == 0;
  if (is_trivial_) return;
  for (const Spread& spread : needs.spread) {
    Counts counts;
    for (int i = 0; i < state.node_count(); ++i) {
      const std::string* const value = ValueOf(i, spread.topology_key);
      if (value == nullptr || !IsEligible(*state.node(i).description, needs)) continue;
      int64_t& count = counts[*value];
      for (const NodeState::Tenant& tenant : state.node(i).tenants) {
        if (tenant.needs->namespace_name == needs.namespace_name &&
            Matches(spread.selector, tenant.needs->labels))
          ++count;
      }
    }
    spread_.push_back(std::move(counts));
  }
  for (const PodTerm& term : needs.affinity)
    affinity_.push_back(CountPods(term, term.topology_key));
  for (const PodTerm& term : needs.anti_affinity)
    anti_affinity_.push_back(CountPods(term, term.topology_key));
  for (const PodTerm& term : needs.preferred_affinity)
    preferred_.push_back(CountPods(term, term.topology_key));
  if (state.anti_affinity_count() == 0) return;
  for (int i = 0; i < state.node_count(); ++i) {
    for (const NodeState::Tenant& tenant : state.node(i).tenants) {
      for (const PodTerm& term : tenant.needs->anti_affinity) {
        const std::string* const value = ValueOf(i, term.topology_key);
        if (value != nullptr && Means(term, needs))
          refused_.emplace_back(term.topology_key, *value);
      }
    }
  }
}

const std::string* TopologyCheck::ValueOf(int node, const std::string& key) const {
  const NodeState& state = state_.node(node);
  if (state.description == nullptr) return nullptr;
  const auto found = state.description->labels.find(key);
  return found == state.description->labels.end() ? nullptr : &found->second;
}

TopologyCheck::Counts TopologyCheck::CountPods(const PodTerm& term, const std::string& key) const {
  Counts counts;
  for (int i = 0; i < state_.node_count(); ++i) {
    const std::string* const value = ValueOf(i, key);
    if (value == nullptr) continue;
    for (const NodeState::Tenant& tenant : state_.node(i).tenants) {
      if (Means(term, *tenant.needs)) ++counts[*value];
    }
  }
  return counts;
}

Misfit TopologyCheck::CheckSpread(const NodeDescription& node) const {
  for (size_t i = 0; i < needs_.spread.size(); ++i) {
    const Spread& spread = needs_.spread[i];
    if (!spread.is_required) continue;
    const auto label = node.labels.find(spread.topology_key);
    if (label == node.labels.end()) return Misfit::kSpread;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (const auto& [value, count] : spread_[i]) least = std::min(least, count);
    const auto here = spread_[i].find(label->second);
    const int64_t count = here == spread_[i].end() ? 0 : here->second;
    const int64_t self = Matches(spread.selector, needs_.labels) ? 1 : 0;
    if (count + self - (spread_[i].empty() ? 0 : least) > spread.max_skew) return Misfit::kSpread;
  }
  return Misfit::kNone;
}

Misfit TopologyCheck::CheckAffinity(int node) const {
  for (size_t i = 0; i < needs_.affinity.size(); ++i) {
    const std::string* const value = ValueOf(node, needs_.affinity[i].topology_key);
    if (value == nullptr) return Misfit::kAffinity;
    // The first of a group that wants to be together has nobody to join.
    const bool is_first = affinity_[i].empty() && Means(needs_.affinity[i], needs_);
    if (!is_first && affinity_[i].count(*value) == 0) return Misfit::kAffinity;
  }
  for (size_t i = 0; i < needs_.anti_affinity.size(); ++i) {
    const std::string* const value = ValueOf(node, needs_.anti_affinity[i].topology_key);
    if (value != nullptr && anti_affinity_[i].count(*value) != 0) return Misfit::kAntiAffinity;
  }
  for (const auto& [key, refused] : refused_) {
    const std::string* const value = ValueOf(node, key);
    if (value != nullptr && *value == refused) return Misfit::kAntiAffinity;
  }
  return Misfit::kNone;
}

Misfit TopologyCheck::Check(int node) const {
  if (is_trivial_ || state_.node(node).description == nullptr) return Misfit::kNone;
  const Misfit spread = CheckSpread(*state_.node(node).description);
  return spread != Misfit::kNone ? spread : CheckAffinity(node);
}

double TopologyCheck::Preference(int node) const {
  if (is_trivial_) return 0;
  double sum = 0;
  for (size_t i = 0; i < needs_.preferred_affinity.size(); ++i) {
    const PodTerm& term = needs_.preferred_affinity[i];
    const std::string* const value = ValueOf(node, term.topology_key);
    const auto count = value == nullptr ? preferred_[i].end() : preferred_[i].find(*value);
    if (count != preferred_[i].end()) sum += static_cast<double>(term.weight * count->second) / 100;
  }
  for (size_t i = 0; i < needs_.spread.size(); ++i) {
    const std::string* const value = ValueOf(node, needs_.spread[i].topology_key);
    const auto count = value == nullptr ? spread_[i].end() : spread_[i].find(*value);
    if (count != spread_[i].end()) sum -= static_cast<double>(count->second) / 10;
  }
  return sum;
}

}  // namespace weft::platform
