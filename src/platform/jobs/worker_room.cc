// SPDX-License-Identifier: Apache-2.0
#include "platform/jobs/worker_room.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"

#include "platform/jobs/task_objects.h"
#include "platform/object/fields.h"
#include "platform/object/pod_view.h"
#include "platform/resources/fit.h"
#include "platform/resources/node_shape.h"
#include "platform/resources/pod_needs.h"

namespace weft::platform {
namespace {

// More workers of one job than these on a node are not planned for.
constexpr int kMostWorkersOfNode = 16;
// Of those that wait for places no more are looked at.
constexpr size_t kMostWaiting = 50;

bool Asks(const PodNeeds& needs) {
  return AmountOf(needs.amounts, kCpu) > 0 || AmountOf(needs.amounts, kMemory) > 0 ||
         needs.gpu.count > 0;
}

// How many such pods fit on the node; `room` counts them as if they were there.
int CountPlaces(const std::shared_ptr<const PodNeeds>& needs, int node, ClusterState* room) {
  const int most = Asks(*needs) ? kMostWorkersOfNode : 1;
  int count = 0;
  while (count < most && CheckNode(room->node(node), *needs) == Misfit::kNone) {
    Place place{.node = node};
    if (needs->gpu.count > 0 && !ChooseGpus(room->node(node), needs->gpu, &place.gpus)) break;
    room->Occupy(needs, place);
    ++count;
  }
  return count;
}

// An hour of the node, by its kind.
std::optional<double> PriceOfNode(const NodeDescription& node,
                                  const std::map<std::string, double>& prices) {
  const auto type = node.labels.find(kInstanceTypeLabel);
  if (type == node.labels.end()) return std::nullopt;
  const auto price = prices.find(type->second);
  return price == prices.end() ? std::nullopt : std::optional(price->second);
}

bool WaitsInVain(const Json& pod) {
  const Json* const condition = ConditionOf(pod, "PodScheduled");
  return !PodView(pod).is_bound() && condition != nullptr &&
         StringField(*condition, {"reason"}) == "Unschedulable";
}

bool FitsSomewhere(const ClusterState& room, const PodNeeds& needs) {
  for (int number = 0; number < room.node_count(); ++number) {
    if (room.node(number).description == nullptr) continue;
    absl::InlinedVector<int, 8> gpus;
    if (CheckNode(room.node(number), needs) == Misfit::kNone &&
        (needs.gpu.count == 0 || ChooseGpus(room.node(number), needs.gpu, &gpus)))
      return true;
  }
  return false;
}

}  // namespace

const ReplicaSpec* TrainingReplica(const TfJob& job) {
  for (const ReplicaType type : {ReplicaType::kWorker, ReplicaType::kChief, ReplicaType::kMaster}) {
    if (const ReplicaSpec* const replica = job.Find(type)) return replica;
  }
  return nullptr;
}

bool AsksForPlace(const Json& pod) {
  ResourceNames names;
  const StatusOr<std::shared_ptr<const PodNeeds>> needs = ReadPodNeeds(pod, &names);
  return needs.ok() && Asks(**needs);
}

Json WithAlternative(const Json& pod, const WorkerAlternative& alternative) {
  Json changed = pod;
  if (Json* const spec = changed.FindMutable("spec")) {
    Json* const containers = spec->FindMutable("containers");
    Json::Array* const items = containers == nullptr ? nullptr : containers->mutable_items();
    if (items != nullptr && !items->empty()) items->front().Set("resources", alternative.resources);
  }
  if (!alternative.node_selector.is_null()) {
    for (const auto& [label, value] : alternative.node_selector.members())
      SetField(&changed, {"spec", "nodeSelector", label}, value);
  }
  return changed;
}

StatusOr<Cluster> RoomForWorkers(const Json& pod, const std::map<std::string, double>& prices,
                                 PackingNodes* nodes) {
  WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const PodNeeds> needs,
                        ReadPodNeeds(pod, &nodes->names));
  const double processors = static_cast<double>(AmountOf(needs->amounts, kCpu)) / 1000;
  const int64_t memory = AmountOf(needs->amounts, kMemory);
  ClusterState room = nodes->now, empty = nodes->empty;
  std::vector<NodeShape> shapes;
  for (int number = 0; number < room.node_count(); ++number) {
    if (room.node(number).description == nullptr) continue;
    const NodeDescription& node = *room.node(number).description;
    NodeShape shape = ShapeOfNode(node);
    shape.price = PriceOfNode(node, prices).value_or(shape.price);
    const int places = CountPlaces(needs, number, &room);
    if (places == 0) continue;
    // Of a node's price a worker has the part that its place is of all that there would be.
    const int of_all = std::max(places, CountPlaces(needs, number, &empty));
    shape.processors = processors > 0 ? processors : shape.processors / of_all;
    shape.memory = memory > 0 ? memory : shape.memory / of_all;
    shape.gpus = static_cast<int>(needs->gpu.count);
    shape.price /= of_all;
    for (int i = 0; i < places; ++i) {
      shapes.push_back(shape);
      shapes.back().name = absl::StrCat(node.name, "/", i);
    }
  }
  if (shapes.empty()) return NotFound("no node has room for one worker");
  return MakeCluster(shapes);
}

std::optional<double> PriceOfPlace(const Json& pod, const std::map<std::string, double>& prices,
                                   PackingNodes* nodes) {
  const std::string name = StringField(pod, {"spec", "nodeName"});
  const int number = name.empty() ? -1 : nodes->empty.FindNode(name);
  if (number < 0 || nodes->empty.node(number).description == nullptr) return std::nullopt;
  const std::optional<double> price = PriceOfNode(*nodes->empty.node(number).description, prices);
  const StatusOr<std::shared_ptr<const PodNeeds>> needs = ReadPodNeeds(pod, &nodes->names);
  if (!price.has_value() || !needs.ok()) return std::nullopt;
  ClusterState room = nodes->empty;
  return *price / std::max(1, CountPlaces(*needs, number, &room));
}

int64_t WorkersThatOthersWant(const std::vector<ObjectPtr>& workers, const std::string& own,
                              const std::vector<ObjectPtr>& pods, PackingNodes* nodes) {
  if (workers.empty()) return 0;
  const int64_t priority = PodView(*workers.back()).priority();
  std::vector<std::shared_ptr<const PodNeeds>> waiting;
  for (const ObjectPtr& pod : pods) {
    const bool is_own =
        PodView(*pod).label(kJobLabel) == own && NamespaceOf(*pod) == NamespaceOf(*workers.back());
    if (is_own || !WaitsInVain(*pod) || PodView(*pod).priority() < priority) continue;
    const auto needs = ReadPodNeeds(*pod, &nodes->names);
    // What fits already only waits for the scheduler.
    if (needs.ok() && !FitsSomewhere(nodes->now, **needs)) waiting.push_back(*needs);
    if (waiting.size() == kMostWaiting) break;
  }
  if (waiting.empty()) return 0;
  ClusterState room = nodes->now;
  for (size_t gone = 1; gone <= workers.size(); ++gone) {
    const Json& worker = *workers[workers.size() - gone];
    const int number = room.FindNode(PodView(worker).node());
    const auto its_needs = ReadPodNeeds(worker, &nodes->names);
    if (number < 0 || !its_needs.ok()) continue;
    const std::vector<NodeState::Tenant>& tenants = room.node(number).tenants;
    const auto there = absl::c_find_if(tenants, [&](const NodeState::Tenant& tenant) {
      return tenant.needs->namespace_name == (*its_needs)->namespace_name &&
             tenant.needs->labels == (*its_needs)->labels;
    });
    if (there == tenants.end()) continue;
    const NodeState::Tenant leaves = *there;
    room.Vacate(leaves.needs, leaves.place);
    if (absl::c_any_of(waiting, [&](const auto& needs) { return FitsSomewhere(room, *needs); }))
      return static_cast<int64_t>(gone);
  }
  return 0;
}

}  // namespace weft::platform
