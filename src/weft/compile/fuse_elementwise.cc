// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "weft/compile/passes.h"
#include "weft/graph/known_shapes.h"

namespace weft::compile {
namespace {

// Beyond this a pass over a tile stops fitting the cache.
constexpr size_t kMostOps = 32;
constexpr size_t kMostInputs = 24;
// A sum of more adds groups of them.
constexpr int kMostAdded = 9;
// Elements that are worth to be computed again instead of kept.
constexpr int64_t kLeastAgain = 4096;
// What has so much fewer elements than the pass makes is computed once, before it.
constexpr int64_t kSmall = 8;

// Whether the node adds up a list of tensors of one shape, up to kMostAdded of them from the first
// to the last.
bool AddsList(const Node& node) {
  return node.schema().is_aggregate && node.schema().inputs.size() == 1 && node.num_inputs() >= 2;
}

// The tile body behind an element-wise node; null if it cannot be part of a fused pass.
const TileBody* TileOf(const PlanOptions& options, const Node& node) {
  if (node.schema().is_stateful || node.num_outputs() != 1 || node.num_inputs() < 1 ||
      node.num_inputs() > (AddsList(node) ? kMostAdded : 2) || node.output_type(0).is_ref) {
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
  if (tile == nullptr || (tile->num_inputs != node.num_inputs() && !AddsList(node)) ||
      tile->output != node.output_type(0).dtype) {
    return nullptr;
  }
  return tile;
}

// What is known of the nodes that passes are made of.
class Candidates {
 public:
  explicit Candidates(const PlanOptions& options) : options_(options) {}

  // Whether the node can be part of a pass. A sum of one shape only where its inputs are known to
  // have it: a pass would broadcast them.
  bool CanJoin(const Node& node) {
    if (TileOf(options_, node) == nullptr) return false;
    if (!AddsList(node)) return true;
    const StatusOr<Shape> first = shapes_.Of(node.input(0)).ToShape();
    return first.ok() &&
           std::all_of(node.inputs().begin(), node.inputs().end(), [&](const Endpoint& input) {
             const StatusOr<Shape> shape = shapes_.Of(input).ToShape();
             return shape.ok() && *shape == *first;
           });
  }

  void IsLike(const Node& node, const Endpoint& tensor) { shapes_.Set(node, {shapes_.Of(tensor)}); }

  // -1 if it is not known.
  int64_t Elements(const Endpoint& tensor) {
    const StatusOr<Shape> shape = shapes_.Of(tensor).ToShape();
    return shape.ok() ? shape->num_elements() : -1;
  }

  // Whether the tensor is known to have few elements beside `all`.
  bool IsSmall(const Endpoint& tensor, int64_t all) {
    const int64_t elements = Elements(tensor);
    return elements >= 0 && elements * kSmall <= all;
  }

 private:
  const PlanOptions& options_;
  // A variable by reference may be assigned another shape (validate_shape = false).
  KnownShapes shapes_{KnownShapes::References::kUnknown};
};

// Grows a group from its last node up: members' results are read inside the group only, so that
// nothing outside can stand between them. What others read too may be computed again in the group.
class Group {
 public:
  Group(Candidates* candidates, Node* root)
      : candidates_(*candidates), root_(root), size_(candidates->Elements({root, 0})) {
    Add(root);
    while (NumOps() < kMostOps && (GrowOnce() || ComputeOnceMore())) {
    }
  }

  size_t size() const { return members_.size(); }

  // Replaces the members by one node. `taken`: those that are gone.
  Status Fuse(Graph* graph, const absl::flat_hash_map<const Node*, int>& position,
              absl::flat_hash_set<const Node*>* taken) {
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
      int64_t so_far = Operand(member->input(0), result, &inputs, &input_types);
      for (int i = 1; i < std::max(member->num_inputs(), 2); ++i) {
        operands.push_back(so_far);
        operands.push_back(i < member->num_inputs()
                               ? Operand(member->input(i), result, &inputs, &input_types)
                               : kNoOperand);
        result[member] = static_cast<int>(ops.size());
        so_far = -1 - result[member];
        ops.push_back(member->op());
        names.push_back(member->name());
        types.push_back(member->input_type(0).dtype);
      }
    }
    def.attrs["Tin"] = input_types;
    def.attrs["Tout"] = root_->output_type(0).dtype;
    def.attrs["ops"] = ops;
    def.attrs["names"] = names;
    def.attrs["types"] = types;
    def.attrs["operands"] = operands;
    WEFT_ASSIGN_OR_RETURN(Node * fused, graph->AddNode(std::move(def), inputs));
    fused->set_assigned_device(root_->assigned_device());
    candidates_.IsLike(*fused, {root_, 0});
    ReplaceNode(graph, root_, fused);
    for (auto member = members_.rbegin(); member != members_.rend(); ++member) {
      if (*member == root_) continue;
      for (Node* control : std::vector<Node*>((*member)->control_inputs())) {
        graph->AddControlEdge(control, fused);
      }
      // What is computed once more stays as long as others read it.
      if (again_.contains(*member) && !(*member)->consumers().empty()) continue;
      taken->insert(*member);
      graph->RemoveNode(*member);
    }
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kNoOperand = INT32_MIN;

  size_t NumOps() const {
    size_t ops = 0;
    for (const Node* member : members_) ops += std::max(member->num_inputs() - 1, 1);
    return ops;
  }

  void Add(Node* node) {
    members_.push_back(node);
    is_member_.insert(node);
  }

  // Takes in what only the group reads.
  bool GrowOnce() {
    for (size_t m = 0; m < members_.size(); ++m) {
      for (const Endpoint& input : members_[m]->inputs()) {
        Node* producer = input.node;
        if (is_member_.contains(producer)) {
          if (again_.contains(producer) && !IsReadOutside(*producer)) again_.erase(producer);
          continue;
        }
        if (!Fits(producer) || IsReadOutside(*producer)) continue;
        Add(producer);
        return true;
      }
    }
    return false;
  }

  // Takes in what others read as well, where that takes an input from the group and brings none but
  // small ones: if the other readers do the same, nobody has to keep it for them.
  bool ComputeOnceMore() {
    if (size_ < kLeastAgain) return false;
    for (size_t m = 0; m < members_.size(); ++m) {
      for (const Endpoint& input : members_[m]->inputs()) {
        Node* producer = input.node;
        // A processor's instruction: what is commutative and has a tile is no slow function.
        if (is_member_.contains(producer) || !producer->schema().is_commutative ||
            AddsList(*producer) || !producer->control_inputs().empty() || !Fits(producer) ||
            candidates_.Elements({producer, 0}) != size_) {
          continue;
        }
        const auto& sources = producer->inputs();
        if (!std::all_of(sources.begin(), sources.end(), [&](const Endpoint& source) {
              return candidates_.IsSmall(source, size_) || IsInput(source);
            })) {
          continue;
        }
        Add(producer);
        again_.insert(producer);
        return true;
      }
    }
    return false;
  }

  bool Fits(Node* producer) {
    return candidates_.CanJoin(*producer) &&
           producer->assigned_device() == root_->assigned_device() &&
           !(size_ >= kLeastAgain && candidates_.IsSmall({producer, 0}, size_)) &&
           CountInputsWith(*producer) <= kMostInputs;
  }

  // Whether the group reads the tensor, or makes it.
  bool IsInput(const Endpoint& tensor) const {
    return is_member_.contains(tensor.node) ||
           std::any_of(members_.begin(), members_.end(), [&](const Node* member) {
             const auto& inputs = member->inputs();
             return std::find(inputs.begin(), inputs.end(), tensor) != inputs.end();
           });
  }

  bool IsReadOutside(const Node& node) const {
    return std::any_of(
        node.consumers().begin(), node.consumers().end(), [&](const Consumer& consumer) {
          return consumer.input == kControlPort || !is_member_.contains(consumer.node) ||
                 again_.contains(consumer.node);
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

  Candidates& candidates_;
  Node* const root_;
  const int64_t size_;  // elements of what it makes; -1 if it is not known
  std::vector<Node*> members_;
  absl::flat_hash_set<const Node*> is_member_;
  absl::flat_hash_set<const Node*> again_;  // members that stay for others
};

}  // namespace

Status FuseElementwise(const PlanOptions& options, Graph* graph) {
  if (!options.kernels->HasKernel("_FusedElementwise")) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph->TopologicalOrder());
  absl::flat_hash_map<const Node*, int> position;
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = static_cast<int>(i);
  Candidates candidates(options);
  absl::flat_hash_set<const Node*> taken;
  for (auto node = order.rbegin(); node != order.rend(); ++node) {
    if (taken.contains(*node) || !candidates.CanJoin(**node)) continue;
    Group group(&candidates, *node);
    if (group.size() < 2) continue;
    WEFT_RETURN_IF_ERROR(group.Fuse(graph, position, &taken));
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
