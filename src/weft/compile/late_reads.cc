// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/late_reads.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

#include "weft/compile/order.h"

namespace weft::compile {
namespace {

bool ReadsReference(const Node& node) {
  if (node.traits().passes_on != PassesOn::kItself || node.input(0).node == nullptr) return false;
  return node.input(0).node->output_type(node.input(0).port).is_ref;
}

bool WritesReference(const Node& node) {
  return node.num_inputs() > 0 && node.input_type(0).is_ref && node.input(0).node != nullptr &&
         ChangesVariable(node) && !node.traits().passes_reference;
}

// The variable whose reference `node` takes first, maybe through others.
const Node* VariableOf(const Node& node) {
  const Node* at = node.input(0).node;
  while (at->num_inputs() > 0 && at->input_type(0).is_ref && at->input(0).node != nullptr) {
    at = at->input(0).node;
  }
  return at;
}

absl::string_view TaskOf(const Node& node) {
  const absl::string_view device = node.assigned_device();
  return device.substr(0, device.find("/device:"));
}

// True, by node id, for what stands behind one of `from`, those themselves included.
std::vector<bool> Behind(const std::vector<Node*>& from, const Graph& graph) {
  std::vector<bool> behind(graph.max_id());
  std::vector<Node*> open(from);
  while (!open.empty()) {
    Node* node = open.back();
    open.pop_back();
    if (behind[node->id()]) continue;
    behind[node->id()] = true;
    for (const Consumer& consumer : node->consumers()) open.push_back(consumer.node);
  }
  return behind;
}

// What `node` waits for besides `read` that is behind an update.
std::vector<Node*> WaitsBehind(const Node& node, const Node* read,
                               const std::vector<bool>& behind) {
  std::vector<Node*> waits;
  const auto add = [&](Node* input) {
    if (input == nullptr || input == read || !behind[input->id()]) return;
    if (std::find(waits.begin(), waits.end(), input) == waits.end()) waits.push_back(input);
  };
  for (const Endpoint& input : node.inputs()) add(input.node);
  for (Node* control : node.control_inputs()) add(control);
  return waits;
}

// Readers of `read` that are behind an update turn to copies of it, one for those that wait for
// the same nodes. Merge takes what comes first and waits for nothing.
Status SplitRead(Node* read, const std::vector<bool>& behind, Graph* graph) {
  std::map<std::vector<Node*>, Node*> copies;
  for (const Consumer& reader : std::vector<Consumer>(read->consumers())) {
    if (reader.input == kControlPort || reader.node->LowersTo(InstructionKind::kMerge)) continue;
    if (TaskOf(*reader.node) != TaskOf(*read)) continue;
    std::vector<Node*> waits = WaitsBehind(*reader.node, read, behind);
    if (waits.empty()) continue;
    Node*& copy = copies[waits];
    if (copy == nullptr) {
      NodeDef def{.name = graph->UniqueName(read->name() + "/after_update"),
                  .op = read->op(),
                  .attrs = read->attrs()};
      WEFT_ASSIGN_OR_RETURN(copy, graph->AddNode(std::move(def), {read->input(0)}, waits));
      for (Node* control : read->control_inputs()) graph->AddControlEdge(control, copy);
      copy->set_assigned_device(read->assigned_device());
    }
    WEFT_RETURN_IF_ERROR(graph->SetInput(reader.node, reader.input, {copy, 0}));
  }
  return absl::OkStatus();
}

// What becomes of a variable's memory on its way from a read to a reader that does not stand right
// behind it.
enum class Passes {
  kNo,
  kReference,  // into a loop or a branch, where the op's form for references goes
  kItself,     // its output is its input
  kView,       // the same elements, seen in another way
};

Passes WayThrough(const Node& node) {
  const OpTraits& traits = node.traits();
  if (!traits.reference_form.empty()) return Passes::kReference;
  if (traits.passes_on == PassesOn::kItself) return Passes::kItself;
  if (traits.passes_on == PassesOn::kView) return Passes::kView;
  return Passes::kNo;
}

// Turns readers that are reached from a read through such nodes to the variable itself: in loops,
// where an update of one round comes before the reader of the next, and in branches. They take its
// value when they run, as in TensorFlow.
class Followers {
 public:
  Followers(Node* read, const std::vector<bool>* behind, bool is_updated_in_loops, Graph* graph)
      : read_(read), behind_(*behind), is_updated_in_loops_(is_updated_in_loops), graph_(graph) {}

  Status Turn() { return TurnReadersOf(read_, Way()); }

 private:
  // From the read to a node.
  struct Way {
    int length = 0;
    bool enters_a_loop = false;
    bool has_view = false;
  };

  // Rounds of a loop come one after another even where nothing but their number says so.
  bool Sees(const Node& reader, const Way& way) const {
    const auto id = static_cast<size_t>(reader.id());
    return (way.enters_a_loop && is_updated_in_loops_) || (id < behind_.size() && behind_[id]);
  }

  Status TurnReadersOf(Node* node, const Way& way) {
    constexpr int kLongest = 100;  // nested loops, branches and views
    if (way.length > kLongest) return absl::OkStatus();
    for (const Consumer& reader : std::vector<Consumer>(node->consumers())) {
      if (reader.input == kControlPort || TaskOf(*reader.node) != TaskOf(*read_)) continue;
      const Passes passes = reader.input == 0 ? WayThrough(*reader.node) : Passes::kNo;
      // A view is not a reference that could go into a loop or a branch.
      if (passes == Passes::kReference && way.has_view) continue;
      if (passes != Passes::kNo) {
        WEFT_RETURN_IF_ERROR(TurnReadersOf(
            reader.node,
            {.length = way.length + 1,
             .enters_a_loop = way.enters_a_loop || reader.node->LowersTo(InstructionKind::kEnter),
             .has_view = way.has_view || passes == Passes::kView}));
        continue;
      }
      if (way.length == 0 || TakesWhatComes(*reader.node) || !Sees(*reader.node, way)) continue;
      std::vector<Node*> waits;
      WEFT_ASSIGN_OR_RETURN(const Endpoint late,
                            LateValueOf({node, reader.port}, *reader.node, &waits));
      WEFT_RETURN_IF_ERROR(graph_->SetInput(reader.node, reader.input, late));
      for (Node* wait : waits) graph_->AddControlEdge(wait, reader.node);
    }
    return absl::OkStatus();
  }

  // Merges take what comes first; what leaves a round of a loop is a value.
  static bool TakesWhatComes(const Node& node) {
    return node.LowersTo(InstructionKind::kMerge) ||
           node.LowersTo(InstructionKind::kNextIteration) || node.LowersTo(InstructionKind::kExit);
  }

  // The variable as `reader` sees it where it now takes `value`. Whoever takes that waits for
  // `waits`, which stood on the way.
  StatusOr<Endpoint> LateValueOf(const Endpoint& value, const Node& reader,
                                 std::vector<Node*>* waits) {
    Node* const node = value.node;
    if (node == read_) return read_->input(0);
    const Passes passes = WayThrough(*node);
    if (passes == Passes::kItself) {
      waits->push_back(node);
      return LateValueOf(node->input(0), reader, waits);
    }
    const bool is_view = passes == Passes::kView;
    std::vector<Node*> updates;
    if (is_view) updates = WaitsBehind(reader, node, behind_);
    Node*& made = made_[{node, updates}];
    if (made == nullptr) {
      std::vector<Endpoint> inputs(node->inputs().begin(), node->inputs().end());
      std::vector<Node*> controls(updates);
      WEFT_ASSIGN_OR_RETURN(inputs[0], LateValueOf(node->input(0), reader, &controls));
      for (Node* control : node->control_inputs()) controls.push_back(control);
      std::sort(controls.begin(), controls.end());
      controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
      NodeDef def{.name = graph_->UniqueName(absl::StrCat(node->name(), "/after_update")),
                  .op = is_view ? node->op() : node->traits().reference_form,
                  .attrs = node->attrs()};
      WEFT_ASSIGN_OR_RETURN(made, graph_->AddNode(std::move(def), inputs, controls));
      made->set_assigned_device(node->assigned_device());
    }
    return Endpoint{made, value.port};
  }

  Node* const read_;
  const std::vector<bool>& behind_;
  const bool is_updated_in_loops_;
  Graph* const graph_;
  // By node and, of views, the updates that they wait for.
  std::map<std::pair<Node*, std::vector<Node*>>, Node*> made_;
};

// Whether the reference that `update` writes came into a loop.
bool IsInLoop(const Node& update) {
  for (const Node* at = &update; at->num_inputs() > 0 && at->input_type(0).is_ref;) {
    at = at->input(0).node;
    if (at == nullptr) return false;
    if (at->LowersTo(InstructionKind::kEnter)) return true;
  }
  return false;
}

}  // namespace

Status ReadAfterUpdates(Graph* step) {
  absl::flat_hash_map<const Node*, std::vector<Node*>> updates, reads;
  std::vector<Node*> all_updates;
  for (Node* node : step->nodes()) {
    if (ReadsReference(*node)) reads[VariableOf(*node)].push_back(node);
    if (!WritesReference(*node)) continue;
    updates[VariableOf(*node)].push_back(node);
    all_updates.push_back(node);
  }
  if (reads.empty() || updates.empty()) return absl::OkStatus();
  // Few nodes are behind any update, as a rule; only their reads are looked at closely.
  const std::vector<bool> behind_any = Behind(all_updates, *step);
  for (const auto& [variable, nodes] : reads) {
    const auto writers = updates.find(variable);
    if (writers == updates.end()) continue;
    const bool concerned = std::any_of(nodes.begin(), nodes.end(), [&](const Node* read) {
      return std::any_of(read->consumers().begin(), read->consumers().end(),
                         [&](const Consumer& reader) { return behind_any[reader.node->id()]; });
    });
    const bool passed_on = std::any_of(nodes.begin(), nodes.end(), [&](const Node* read) {
      return std::any_of(
          read->consumers().begin(), read->consumers().end(),
          [&](const Consumer& reader) { return WayThrough(*reader.node) != Passes::kNo; });
    });
    if (!concerned && !passed_on) continue;
    const std::vector<bool> behind = Behind(writers->second, *step);
    const bool in_loops = std::any_of(writers->second.begin(), writers->second.end(),
                                      [](const Node* update) { return IsInLoop(*update); });
    for (Node* read : nodes) {
      if (passed_on) WEFT_RETURN_IF_ERROR(Followers(read, &behind, in_loops, step).Turn());
      WEFT_RETURN_IF_ERROR(SplitRead(read, behind, step));
    }
  }
  return absl::OkStatus();
}

}  // namespace weft::compile
