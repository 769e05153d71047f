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

// Grows a group from its last node up: members' results are read inside the group only, so that
// nothing outside can stand between them.
class Group {
 public:
  Group(const PlanOptions& options, Node* root) : options_(options), root_(root) {
    members_.push_back(root);
    is_member_.insert(root);
    bool grown = true;
    while (grown && members_.size() < kMostOps) grown = GrowOnce();
  }

  size_t size() const { return members_.size(); }

  // Replaces the members by one node.
  Status Fuse(Graph* graph, const absl::flat_hash_map<const Node*, int>& position) {
    std::sort(members_.begin(), members_.end(),
              [&](const Node* a, const Node* b) { return position.at(a) < position.at(b); });
    NodeDef def{.name = graph->UniqueName(absl::StrCat(root_->name(), "/fused")),
                .op = "_FusedElementwise",
                .device = root_->requested_device()};
    std::vector<Endpoint> inputs;
    AttrValue::IntList operands;
    AttrValue::StringList ops, names;
    AttrValue::TypeList types, input_types;
    absl::flat_hash_map<const Node*, int> result;
    for (const Node* member : members_) {
      for (int i = 0; i < 2; ++i) {
        operands.push_back(i < member->num_inputs()
                               ? Operand(member->input(i), result, &inputs, &input_types)
                               : kNoOperand);
      }
      result[member] = static_cast<int>(ops.size());
      ops.push_back(member->op());
      names.push_back(member->name());
      types.push_back(member->input_type(0).dtype);
    }
    def.attrs["Tin"] = input_types;
    def.attrs["Tout"] = root_->output_type(0).dtype;
    def.attrs["ops"] = ops;
    def.attrs["names"] = names;
    def.attrs["types"] = types;
    def.attrs["operands"] = operands;
    WEFT_ASSIGN_OR_RETURN(Node * fused, graph->AddNode(std::move(def), inputs));
    fused->set_assigned_device(root_->assigned_device());
    ReplaceNode(graph, root_, fused);
    for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
      if (*member == root_) continue;
      for (Node* control : std::vector<Node*>((*member)->control_inputs())) {
        graph->AddControlEdge(control, fused);
      }
      graph->RemoveNode(*member);
    }
    return absl::OkStatus();
  }

  const absl::flat_hash_set<const Node*>& members() const { return is_member_; }

 private:
  static constexpr int64_t kNoOperand = INT32_MIN;

  bool GrowOnce() {
    for (size_t m = 0; m < members_.size(); ++m) {
      for (const Endpoint& input : members_[m]->inputs()) {
        Node* producer = input.node;
        if (is_member_.contains(producer) || TileOf(options_, *producer) == nullptr) continue;
        if (producer->assigned_device() != root_->assigned_device() || IsReadOutside(*producer))
          continue;
        if (CountInputsWith(*producer) > kMostInputs) continue;
        members_.push_back(producer);
        is_member_.insert(producer);
        return true;
      }
    }
    return false;
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
  Node* const root_;
  std::vector<Node*> members_;
  absl::flat_hash_set<const Node*> is_member_;
};

}  // namespace

Status FuseElementwise(const PlanOptions& options, Graph* graph) {
  if (!options.kernels->HasKernel("_FusedElementwise")) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  absl::flat_hash_map<const Node*, int> position;
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int>(i);
  absl::flat_hash_set<const Node*> taken;
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    if (taken.contains(*node) || TileOf(options, **node) == nullptr) continue;
    Group group(options, *node);
    if (group.size() < 2) continue;
    taken.insert(group.members().begin(), group.members().end());
    WEFT_RETURN_IF_ERROR(group.Fuse(graph, position));
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
