// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/late_reads.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "weft/compile/order.h"
#include "weft/compile/partition.h"

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
    // Nodes that were added since are read here, and so waited for.
    if (input == nullptr || input == read || static_cast<size_t>(input->id()) >= behind.size()) {
      return;
    }
    if (!behind[input->id()]) return;
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
  kRound,      // the nodes of a loop's variable that its body leaves as it is
  kChanged,    // the start of a loop's variable that its body changes
  kExit,       // a variable leaves its loop
};

bool IsLoopCondition(const Node* node) {
  return node != nullptr && node->LowersTo(InstructionKind::kLoopCondition);
}

// Of a loop as TensorFlow's clients make them.
bool LeavesLoop(const Node& exit) {
  const Node* const turn = exit.input(0).node;
  return turn != nullptr && turn->LowersTo(InstructionKind::kSwitch) &&
         IsLoopCondition(turn->input(1).node);
}

// Whether a Merge is that of a loop's variable.
bool IsLoopVariable(const Node& merge) {
  if (!merge.LowersTo(InstructionKind::kMerge) || merge.num_inputs() != 2) return false;
  const Node* const enter = merge.input(0).node;
  const Node* const next = merge.input(1).node;
  return enter != nullptr && enter->LowersTo(InstructionKind::kEnter) && next != nullptr &&
         next->LowersTo(InstructionKind::kNextIteration);
}

// Whether each round passes a loop's variable on as it got it.
bool IsKept(const Node& merge) {
  const Node* at = merge.input(1).node;
  constexpr int kLongest = 100;
  for (int i = 0; i < kLongest && at != nullptr; ++i) {
    if (at == &merge) return true;
    const bool goes_on = at->LowersTo(InstructionKind::kNextIteration) ||
                         at->LowersTo(InstructionKind::kSwitch) ||
                         at->traits().passes_on == PassesOn::kItself;
    if (!goes_on) return false;
    at = at->input(0).node;
  }
  return false;
}

Passes WayThrough(const Node& node) {
  const OpTraits& traits = node.traits();
  if (node.LowersTo(InstructionKind::kSwitch) && IsLoopCondition(node.input(1).node)) {
    return Passes::kRound;
  }
  if (!traits.reference_form.empty()) return Passes::kReference;
  if (IsLoopVariable(node)) return IsKept(node) ? Passes::kRound : Passes::kChanged;
  if (node.LowersTo(InstructionKind::kExit)) return LeavesLoop(node) ? Passes::kExit : Passes::kNo;
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
    bool is_in_round = false;  // a round of the loop has not shown yet that there is one
    bool has_view = false;
    bool is_changed = false;  // in a loop whose body changes what is on the way
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
      const Passes passes = reader.input == 0 ? WayOn(*reader.node, way) : Passes::kNo;
      if (passes != Passes::kNo) {
        const bool ends_a_round = passes == Passes::kItself || passes == Passes::kExit;
        WEFT_RETURN_IF_ERROR(TurnReadersOf(
            reader.node,
            {.length = way.length + 1,
             .enters_a_loop = way.enters_a_loop || reader.node->LowersTo(InstructionKind::kEnter),
             .is_in_round =
                 (passes == Passes::kRound && reader.node->LowersTo(InstructionKind::kSwitch)) ||
                 (way.is_in_round && !ends_a_round),
             .has_view = way.has_view || passes == Passes::kView,
             .is_changed = way.is_changed || passes == Passes::kChanged}));
        // What leaves the loop is the reference if no round has run, and a value of the last one
        // otherwise: its Exit takes that when it runs, also for readers that wait for no update.
        if (!(way.is_changed && passes == Passes::kExit)) continue;
      }
      const bool leaves = way.is_changed && reader.node->LowersTo(InstructionKind::kExit);
      if (way.is_in_round && !leaves) continue;
      if (way.length == 0 || !Sees(*reader.node, way)) continue;
      if (TakesWhatComes(*reader.node) && !leaves) continue;
      std::vector<Node*> waits;
      WEFT_ASSIGN_OR_RETURN(const Endpoint late,
                            LateValueOf({node, reader.port}, *reader.node, &waits));
      if (late.node->assigned_device() != reader.node->assigned_device()) {
        // The reference crosses as its value, which is read after what the reader waits for.
        const std::vector<Node*> more = WaitsBehind(*reader.node, node, behind_);
        waits.insert(waits.end(), more.begin(), more.end());
      }
      WEFT_RETURN_IF_ERROR(graph_->SetInput(reader.node, reader.input, late));
      for (Node* wait : waits) graph_->AddControlEdge(wait, reader.node);
    }
    return absl::OkStatus();
  }

  // WayThrough, as far as the way can be followed from here. What a body changes is followed from
  // its loop's start to its end and in no other form.
  static Passes WayOn(const Node& node, const Way& way) {
    const Passes passes = WayThrough(node);
    if (passes == Passes::kChanged && (way.has_view || way.is_changed || !way.enters_a_loop)) {
      return Passes::kNo;
    }
    return way.is_changed && node.LowersTo(InstructionKind::kEnter) ? Passes::kNo : passes;
  }

  // Merges take what comes first; what goes to the next round is a value.
  static bool TakesWhatComes(const Node& node) {
    return node.LowersTo(InstructionKind::kMerge) ||
           node.LowersTo(InstructionKind::kNextIteration) || node.LowersTo(InstructionKind::kExit);
  }

  // A view that stood on the way, and what else it reads, brought to where the way has come.
  struct View {
    Node* node = nullptr;
    std::vector<Endpoint> operands;
  };
  // What is known at a point of the way.
  struct Late {
    Endpoint reference;
    std::vector<View> views;    // of the reference; the first comes first
    std::vector<Node*> passed;  // stood on the way since the reference's last node
    bool is_changed = false;    // by the loop's body: a reference in some rounds, a value in others
  };

  // The variable as `reader` sees it where it now takes `value`. Whoever takes that waits for
  // `waits`, which stood on the way. Views are taken last, right before the reader.
  StatusOr<Endpoint> LateValueOf(const Endpoint& value, const Node& reader,
                                 std::vector<Node*>* waits) {
    std::vector<Endpoint> way;
    for (Endpoint at = value; at.node != read_; at = at.node->input(0)) way.push_back(at);
    std::reverse(way.begin(), way.end());
    Late late{.reference = read_->input(0)};
    std::vector<Late> outside;  // of the loops that the way is in
    for (const Endpoint& at : way) {
      Node* const node = at.node;
      switch (WayThrough(*node)) {
        case Passes::kNo:
          break;
        case Passes::kRound:
          if (late.is_changed) {
            WEFT_ASSIGN_OR_RETURN(Node * turn, TwinOf(*node, late.reference, late.passed));
            late = {.reference = {turn, at.port}, .is_changed = true};
          }
          break;
        case Passes::kChanged: {
          WEFT_ASSIGN_OR_RETURN(Node * merge, ChangedTwinOf(*node, outside.back()));
          late = {.reference = {merge, 0}, .is_changed = true};
          break;
        }
        case Passes::kItself:
          late.passed.push_back(node);
          break;
        case Passes::kView:
          late.views.push_back({node, {node->inputs().begin() + 1, node->inputs().end()}});
          for (Node* control : node->control_inputs()) late.passed.push_back(control);
          break;
        case Passes::kExit:
          if (outside.empty()) break;
          if (late.is_changed) {
            Node*& exit = changed_[node];
            if (exit == nullptr) {
              WEFT_ASSIGN_OR_RETURN(exit, Beside(*node, {.op = "RefExit", .attrs = node->attrs()},
                                                 {late.reference}, {}));
            }
            late = {.reference = {exit, 0}, .is_changed = true};
          } else {
            late = std::move(outside.back());
          }
          outside.pop_back();
          AddExits(*node, &late.passed);
          break;
        case Passes::kReference:
          if (node->LowersTo(InstructionKind::kEnter)) outside.push_back(late);
          WEFT_RETURN_IF_ERROR(Follow(at, &late));
          break;
      }
    }
    if (late.views.empty()) {
      waits->insert(waits->end(), late.passed.begin(), late.passed.end());
      return late.reference;
    }
    return ViewOf(value, late, WaitsBehind(reader, value.node, behind_));
  }

  // Of the loop that `exit` leaves, what ends behind its updates: the rounds of other variables may
  // take longer.
  void AddExits(const Node& exit, std::vector<Node*>* exits) const {
    const Node* const condition = exit.input(0).node->input(1).node;
    for (const Consumer& turn : condition->consumers()) {
      for (const Consumer& left : turn.node->consumers()) {
        if (!left.node->LowersTo(InstructionKind::kExit)) continue;
        if (!turn.node->LowersTo(InstructionKind::kSwitch)) continue;
        const auto id = static_cast<size_t>(left.node->id());
        if (left.node == &exit || (id < behind_.size() && behind_[id])) exits->push_back(left.node);
      }
    }
  }

  // Takes the reference, and what views of it read, into the loop or branch as `at` takes its
  // input.
  Status Follow(const Endpoint& at, Late* late) {
    Node* const node = at.node;
    for (View& view : late->views) {
      for (Endpoint& operand : view.operands) {
        WEFT_ASSIGN_OR_RETURN(Node * twin, TwinOf(*node, operand, node->control_inputs()));
        operand = {twin, at.port};
      }
    }
    for (Node* control : node->control_inputs()) late->passed.push_back(control);
    WEFT_ASSIGN_OR_RETURN(Node * twin, TwinOf(*node, late->reference, late->passed));
    *late = {.reference = {twin, at.port}, .views = std::move(late->views)};
    return absl::OkStatus();
  }

  // A node that does with `input` what the Enter or Switch `node` does.
  StatusOr<Node*> TwinOf(const Node& node, const Endpoint& input, std::vector<Node*> controls) {
    const ArgType type = input.node->output_type(input.port);
    Node*& made = twins_[{&node, input.node, input.port}];
    if (made != nullptr) return made;
    std::vector<Endpoint> inputs(node.inputs().begin(), node.inputs().end());
    inputs[0] = input;
    NodeDef def{.name = graph_->UniqueName(absl::StrCat(node.name(), "/after_update")),
                .op = type.is_ref ? node.traits().reference_form : node.op(),
                .attrs = node.attrs()};
    def.attrs["T"] = type.dtype;
    // Each round takes it from here, and not from the round before.
    if (node.LowersTo(InstructionKind::kEnter)) def.attrs["is_constant"] = true;
    Sort(&controls);
    WEFT_ASSIGN_OR_RETURN(made, graph_->AddNode(std::move(def), inputs, controls));
    made->set_assigned_device(type.is_ref ? input.node->assigned_device() : node.assigned_device());
    return made;
  }

  // A loop variable beside that of `merge`: the reference where that has the variable's memory, and
  // its value where it has one of its own. `before`: the reference as it stands before the loop.
  StatusOr<Node*> ChangedTwinOf(const Node& merge, const Late& before) {
    Node*& made = changed_[&merge];
    if (made != nullptr) return made;
    const Node& enter = *merge.input(0).node;
    const Node& next = *merge.input(1).node;
    WEFT_ASSIGN_OR_RETURN(Node * start, Beside(enter, {.op = "RefEnter", .attrs = enter.attrs()},
                                               {before.reference}, before.passed));
    WEFT_ASSIGN_OR_RETURN(const Endpoint value, AsReference(next.input(0)));
    WEFT_ASSIGN_OR_RETURN(Node * on, Beside(next, {.op = "RefNextIteration", .attrs = next.attrs()},
                                            {value}, {next.input(0).node}));
    WEFT_ASSIGN_OR_RETURN(made, Beside(merge, {.op = "RefMerge", .attrs = merge.attrs()},
                                       {Endpoint{start, 0}, Endpoint{on, 0}}, {}));
    return made;
  }

  // What a body makes of its variable, as an edge for references.
  StatusOr<Endpoint> AsReference(const Endpoint& value) {
    const auto is_reference = [this](const Endpoint& e) {
      return e.node->output_type(e.port).is_ref && e.node->assigned_device() == VariableDevice();
    };
    constexpr int kLongest = 100;
    Endpoint at = value;
    for (int i = 0; i < kLongest && at.node != nullptr; ++i) {
      if (is_reference(at)) return at;
      if (at.node->LowersTo(InstructionKind::kEnter)) {
        // From outside of the loop, by a read there.
        const Node* const read = at.node->input(0).node;
        if (read == nullptr || !ReadsReference(*read) || !is_reference(read->input(0))) break;
        WEFT_ASSIGN_OR_RETURN(Node * twin, TwinOf(*at.node, read->input(0), {}));
        return Endpoint{twin, 0};
      }
      if (at.node->traits().passes_on != PassesOn::kItself) break;
      at = at.node->input(0);
    }
    const DType dtype = value.node->output_type(value.port).dtype;
    WEFT_ASSIGN_OR_RETURN(
        Node * made,
        Beside(*value.node, {.op = "_AsReference", .attrs = {{"T", dtype}}}, {value}, {}));
    return Endpoint{made, 0};
  }

  // A node for references, which stay where the variable is.
  StatusOr<Node*> Beside(const Node& node, NodeDef def, const std::vector<Endpoint>& inputs,
                         const std::vector<Node*>& controls) {
    def.name = graph_->UniqueName(absl::StrCat(node.name(), "/after_update"));
    WEFT_ASSIGN_OR_RETURN(Node * made, graph_->AddNode(std::move(def), inputs, controls));
    made->set_assigned_device(VariableDevice());
    return made;
  }
  const std::string& VariableDevice() const { return read_->input(0).node->assigned_device(); }

  StatusOr<Endpoint> ViewOf(const Endpoint& value, const Late& late, std::vector<Node*> updates) {
    Node*& made = views_[{value.node, updates}];
    if (made != nullptr) return Endpoint{made, 0};
    Endpoint seen = late.reference;
    std::vector<Node*> controls = std::move(updates);
    controls.insert(controls.end(), late.passed.begin(), late.passed.end());
    Sort(&controls);
    for (const View& view : late.views) {
      std::vector<Endpoint> inputs = {seen};
      inputs.insert(inputs.end(), view.operands.begin(), view.operands.end());
      NodeDef def{.name = graph_->UniqueName(absl::StrCat(view.node->name(), "/after_update")),
                  .op = view.node->op(),
                  .attrs = view.node->attrs()};
      WEFT_ASSIGN_OR_RETURN(made, graph_->AddNode(std::move(def), inputs, controls));
      made->set_assigned_device(view.node->assigned_device());
      seen = {made, 0};
      controls.clear();
    }
    return seen;
  }

  static void Sort(std::vector<Node*>* nodes) {
    std::sort(nodes->begin(), nodes->end());
    nodes->erase(std::unique(nodes->begin(), nodes->end()), nodes->end());
  }

  Node* const read_;
  const std::vector<bool>& behind_;
  const bool is_updated_in_loops_;
  Graph* const graph_;
  // By the Enter or Switch and what it is done with.
  std::map<std::tuple<const Node*, const Node*, int>, Node*> twins_;
  std::map<const Node*, Node*> changed_;  // by the Merge, or by the Exit
  // By the value that they stand for and the updates that they wait for.
  std::map<std::pair<Node*, std::vector<Node*>>, Node*> views_;
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
