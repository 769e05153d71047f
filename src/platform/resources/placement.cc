// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/placement.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"

#include "platform/resources/fit.h"
#include "platform/resources/topology.h"

namespace weft::platform {
namespace {

// One step of a preferred affinity or of a PreferNoSchedule taint weighs as much as this part of
// what the policy can say at most.
constexpr double kPreferenceWeight = 2;

double NodePreference(const NodeDescription& node, const PodNeeds& needs) {
  double sum = 0;
  for (const auto& [weight, term] : needs.preferred_nodes) {
    if (Matches(term, node)) sum += static_cast<double>(weight) / 100;
  }
  for (const Taint& taint : node.taints) {
    if (taint.effect == "PreferNoSchedule" && !Tolerates(needs.tolerations, taint)) sum -= 1;
  }
  return sum;
}

// The search for one pod's node.
class Search {
 public:
  Search(const ClusterState& state, const PodNeeds& needs, const GangProgress& gang,
         const PlaceOptions& options)
      : state_(state), needs_(needs), gang_(gang), options_(options), topology_(state, needs) {}

  int Run() {
    const Walk walk = options_.placement->walk();
    const bool needs_whole = needs_.gpu.count > 0 && !needs_.gpu.is_shared();
    if (options_.most_candidates > 0) TryPlaced();
    if (walk == Walk::kAll && options_.most_candidates == 0 && !needs_whole) {
      for (int i = 0; i < state_.node_count(); ++i) Try(i);
      return best_;
    }
    const int least = needs_whole ? static_cast<int>(needs_.gpu.count) : 0;
    const int most = state_.most_free_gpus();
    for (int step = 0; least + step <= most && !is_done_; ++step) {
      const int free = walk == Walk::kEmptiestFirst ? most - step : least + step;
      if (best_ >= 0 && !has_preferences_ &&
          best_score_ > options_.placement->Bound(state_, free, needs_))
        break;
      for (const int node : state_.NodesWithFreeGpus(free)) {
        Try(node);
        if (is_done_) break;
      }
    }
    return best_;
  }

 private:
  // Where others of the gang are, which a search that ends early might not see.
  void TryPlaced() {
    if (gang_.placed == nullptr) return;
    int last = -1;
    for (const Place& place : *gang_.placed) {
      if (place.node != last) Try(place.node);
      last = place.node;
    }
    candidates_ = 0;
    is_done_ = false;
  }

  void Try(int number) {
    const NodeState& node = state_.node(number);
    if (CheckNode(node, needs_) != Misfit::kNone) return;
    if (topology_.Check(number) != Misfit::kNone) return;
    double score = options_.placement->Score(state_, number, needs_, gang_);
    // What others prefer may make a worse node the better one.
    has_preferences_ =
        has_preferences_ || !topology_.is_trivial() || !needs_.preferred_nodes.empty();
    if (!needs_.preferred_nodes.empty() || !node.description->taints.empty())
      score += kPreferenceWeight * NodePreference(*node.description, needs_);
    if (!topology_.is_trivial()) score += kPreferenceWeight * topology_.Preference(number);
    if (best_ < 0 || score > best_score_ || (score == best_score_ && number < best_)) {
      best_ = number;
      best_score_ = score;
    }
    is_done_ = options_.most_candidates > 0 && ++candidates_ >= options_.most_candidates;
  }

  const ClusterState& state_;
  const PodNeeds& needs_;
  const GangProgress& gang_;
  const PlaceOptions& options_;
  const TopologyCheck topology_;
  int best_ = -1;
  double best_score_ = 0;
  int candidates_ = 0;
  bool is_done_ = false;
  bool has_preferences_ = false;
};

}  // namespace

bool PlacementPolicy::ChooseGpus(const NodeState& node, const PodNeeds& needs,
                                 absl::InlinedVector<int, 8>* gpus) {
  return platform::ChooseGpus(node, needs.gpu, gpus);
}

std::vector<std::string> PlacementNames() {
  return {"packing", "spreading", "consolidation", "fragmentation", "random"};
}

StatusOr<std::unique_ptr<PlacementPolicy>> MakePlacement(absl::string_view name) {
  if (name == "packing") return MakePacking();
  if (name == "spreading") return MakeSpreading();
  if (name == "consolidation") return MakeConsolidation();
  if (name == "fragmentation") return MakeFragmentation();
  if (name == "random") return MakeRandomPlacement(1);
  return InvalidArgument("There is no placement '", name, "'; there are ",
                         absl::StrJoin(PlacementNames(), ", "));
}

Place FindPlace(const ClusterState& state, const PodNeeds& needs, const GangProgress& gang,
                const PlaceOptions& options) {
  Place place;
  place.node = Search(state, needs, gang, options).Run();
  if (place.node >= 0 && needs.gpu.count > 0 &&
      !options.placement->ChooseGpus(state.node(place.node), needs, &place.gpus))
    place.node = -1;
  return place;
}

bool PlaceGang(const std::vector<std::shared_ptr<const PodNeeds>>& pods,
               const PlaceOptions& options, ClusterState* state, std::vector<Place>* places) {
  places->clear();
  places->reserve(pods.size());
  GangProgress gang;
  gang.placed = places;
  gang.remaining = static_cast<int64_t>(pods.size());
  for (const auto& pod : pods) {
    Place place = FindPlace(*state, *pod, gang, options);
    if (place.node < 0) {
      for (size_t i = places->size(); i-- > 0;) state->Vacate(pods[i], (*places)[i], false);
      places->clear();
      return false;
    }
    state->Occupy(pod, place);
    places->push_back(std::move(place));
    --gang.remaining;
  }
  return true;
}

}  // namespace weft::platform
