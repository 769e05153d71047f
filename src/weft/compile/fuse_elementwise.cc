// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "weft/compile/passes.h"

namespace weft::compile {
namespace {

// Beyond this a pass over a tile stops fitting the cache.
constexpr size_t kMostOps = 32;
constexpr size_t kMostInputs = 24;
// Results beside the last one's that others read.
constexpr size_t kMostRead = 12;

// Where nodes stand in an order in which each comes after what it reads or waits for.
using Positions = absl::flat_hash_map<const Node*, int>;

// The order in which what leads far comes first: what a step needs last stands as late as it may,
// out of the way of chains that go on.
StatusOr<std::vector<Node*>> FarthestFirst(const Graph& graph) {
  WEFT_ASSIGN_OR_RETURN(std::vector<Node*> order, graph.TopologicalOrder());
  Positions position, way;
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int>(i);
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    int longest = 0;
    for (const Consumer& consumer : (*node)->consumers()) {
      // Edges back to a loop's begin are no part of the order.
      if (position.at(consumer.node) > position.at(*node))
        longest = std::max(longest, way.at(consumer.node) + 1);
    }
    way[*node] = longest;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](const Node* a, const Node* b) { return way.at(a) > way.at(b); });
  return order;
}

// The tile body behind an element-wise node; null if it cannot be part of a fused pass.
const TileBody* TileOf(const PlanOptions& options, const Node& node) {
  if (node.schema().is_stateful || node.num_outputs() != 1 || node.num_inputs() < 1 ||
      node.num_inputs() > 2 || node.output_type(0).is_ref) {
    return nullptr;
  }
  const DType dtype = node.input_type(0).dtype;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (node.input(i).node == nullptr || node.input_type(i).is_ref ||
        node.input_type(i).dtype != dtype) {
      return nullptr;
    }
  }
  // A comparison of shapes that do not fit answers instead of failing.
  if (!FindAttrOr<bool>(node.attrs(), "incompatible_shape_error", true)) return nullptr;
  const TileBody* tile = options.kernels->FindTile(node.op(), dtype);
  if (tile == nullptr || tile->num_inputs != node.num_inputs() ||
      tile->output != node.output_type(0).dtype) {
    return nullptr;
  }
  return tile;
}

// Grows a group from its last node up. Who reads a member from outside comes after the last one in
// the graph's order, so that nothing outside can stand between members.
class Group {
 public:
  // `keeps_inside`: members' results but the last one's are read inside the group only.
  Group(const PlanOptions& options, const Positions& position, bool keeps_inside, Node* root)
      : options_(options), position_(position), keeps_inside_(keeps_inside), root_(root) {
    members_.push_back(root);
    is_member_.insert(root);
    bool grown = true;
    while (grown && members_.size() < kMostOps) grown = GrowOnce();
  }

  size_t size() const { return members_.size(); }

  // Replaces the members by one node, and returns it.
  StatusOr<Node*> Fuse(Graph* graph) {
    std::sort(members_.begin(), members_.end(),
              [&](const Node* a, const Node* b) { return position_.at(a) < position_.at(b); });
    NodeDef def{.name = graph->UniqueName(absl::StrCat(root_->name(), "/fused")),
                .op = "_FusedElementwise",
                .device = root_->requested_device()};
    std::vector<Endpoint> inputs;
    AttrValue::IntList operands, read;
    AttrValue::StringList ops, names;
    AttrValue::TypeList types, input_types, output_types = {root_->output_type(0).dtype};
    absl::flat_hash_map<const Node*, int> result;
    std::vector<Node*> read_members;
    for (Node* member : members_) {
      for (int i = 0; i < 2; ++i) {
        operands.push_back(i < member->num_inputs()
                               ? Operand(member->input(i), result, &inputs, &input_types)
                               : kNoOperand);
      }
      const int number = static_cast<int>(ops.size());
      result[member] = number;
      ops.push_back(member->op());
      names.push_back(member->name());
      types.push_back(member->input_type(0).dtype);
      if (member == root_ || !IsReadOutside(*member)) continue;
      read.push_back(number);
      output_types.push_back(member->output_type(0).dtype);
      read_members.push_back(member);
    }
    def.attrs["Tin"] = input_types;
    def.attrs["Tout"] = output_types;
    def.attrs["ops"] = ops;
    def.attrs["names"] = names;
    def.attrs["types"] = types;
    def.attrs["operands"] = operands;
    def.attrs["read"] = read;
    WEFT_ASSIGN_OR_RETURN(Node * fused, graph->AddNode(std::move(def), inputs));
    fused->set_assigned_device(root_->assigned_device());
    ReplaceNode(graph, root_, fused);
    for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
      if (*member == root_) continue;
      for (Node* control : std::vector<Node*>((*member)->control_inputs())) {
        graph->AddControlEdge(control, fused);
      }
    }
    for (size_t i = 0; i < read_members.size(); ++i) {
      Node* member = read_members[i];
      for (const Consumer& consumer : std::vector<Consumer>(member->consumers())) {
        if (consumer.input == kControlPort && !is_member_.contains(consumer.node)) {
          graph->AddControlEdge(fused, consumer.node);
        } else if (consumer.input != kControlPort && !is_member_.contains(consumer.node)) {
          WEFT_RETURN_IF_ERROR(
              graph->SetInput(consumer.node, consumer.input, {fused, static_cast<int>(i) + 1}));
        }
      }
    }
    for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
      if (*member != root_) graph->RemoveNode(*member);
    }
    return fused;
  }

  const absl::flat_hash_set<const Node*>& members() const { return is_member_; }

 private:
  static constexpr int64_t kNoOperand = INT32_MIN;

  bool GrowOnce() {
    for (size_t m = 0; m < members_.size(); ++m) {
      for (const Endpoint& input : members_[m]->inputs()) {
        Node* producer = input.node;
        if (is_member_.contains(producer) || TileOf(options_, *producer) == nullptr) continue;
        if (producer->assigned_device() != root_->assigned_device() || !MayJoin(*producer))
          continue;
        if (CountInputsWith(*producer) > kMostInputs) continue;
        members_.push_back(producer);
        is_member_.insert(producer);
        return true;
      }
    }
    return false;
  }

  // Whether the results of the node that others read can be given by the group.
  bool MayJoin(const Node& node) const {
    if (!IsReadOutside(node)) return true;
    if (keeps_inside_) return false;
    size_t num_read = 1;
    for (const Node* member : members_)
      num_read += member != root_ && IsReadOutside(*member) ? 1 : 0;
    return num_read <= kMostRead &&
           std::all_of(node.consumers().begin(), node.consumers().end(),
                       [&](const Consumer& consumer) {
                         return is_member_.contains(consumer.node) ||
                                position_.at(consumer.node) > position_.at(root_);
                       });
  }

  bool IsReadOutside(const Node& node) const {
    return std::any_of(
        node.consumers().begin(), node.consumers().end(), [&](const Consumer& consumer) {
          return consumer.input == kControlPort || !is_member_.contains(consumer.node);
        });
  }

  size_t CountInputsWith(const Node& candidate) const {
    absl::flat_hash_set<Endpoint> outside;
    const auto add = [&](const Node& node) {
      for (const Endpoint& input : node.inputs()) {
        if (!is_member_.contains(input.node) && input.node != &candidate) outside.insert(input);
      }
    };
    for (const Node* member : members_) add(*member);
    add(candidate);
    return outside.size();
  }

  // External inputs count from 0 up, results of earlier members from -1 down.
  int64_t Operand(const Endpoint& input, const absl::flat_hash_map<const Node*, int>& result,
                  std::vector<Endpoint>* inputs, AttrValue::TypeList* types) const {
    if (const auto made = result.find(input.node); made != result.end()) return -1 - made->second;
    const auto known = std::find(inputs->begin(), inputs->end(), input);
    if (known != inputs->end()) return known - inputs->begin();
    inputs->push_back(input);
    types->push_back(input.node->output_type(input.port).dtype);
    return static_cast<int64_t>(inputs->size()) - 1;
  }

  const PlanOptions& options_;
  const Positions& position_;
  const bool keeps_inside_;
  Node* const root_;
  std::vector<Node*> members_;
  absl::flat_hash_set<const Node*> is_member_;
};

}  // namespace

Status FuseElementwise(const PlanOptions& options, Graph* graph) {
  if (!options.kernels->HasKernel("_FusedElementwise")) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, FarthestFirst(*graph));
  Positions position;
  bool has_branches = false;
  for (size_t i = 0; i < order.size(); ++i) {
    position[order[i]] = static_cast<int>(i);
    has_branches = has_branches || order[i]->LowersTo(InstructionKind::kSwitch) ||
                   order[i]->LowersTo(InstructionKind::kEnter);
  }
  absl::flat_hash_set<const Node*> taken;
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    if (taken.contains(*node) || TileOf(options, **node) == nullptr) continue;
    // Beside a Switch, one member may be dead where another is alive.
    Group group(options, position, /*keeps_inside=*/has_branches, *node);
    if (group.size() < 2) continue;
    taken.insert(group.members().begin(), group.members().end());
    WEFT_ASSIGN_OR_RETURN(const Node* fused, group.Fuse(graph));
    // It stands where its last member stood: after what it reads, before all that read it.
    position[fused] = position.at(*node);
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
