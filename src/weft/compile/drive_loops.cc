// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/drive_loops.h"

#include <algorithm>
#include <vector>

namespace weft::compile {
namespace {

// Where each frame has nodes: its own and those of the loops inside it. By frame and place: a
// device there.
using FramePlaces = std::vector<std::map<std::string, std::string>>;

struct Loops {
  std::vector<Node*> order;
  FrameLayout layout;
  FramePlaces places;
};

StatusOr<Loops> FindLoops(const Graph& graph, const PlaceOf& place_of) {
  Loops loops;
  WEFT_ASSIGN_OR_RETURN(loops.order, graph.TopologicalOrder());
  for (const Node* node : loops.order) {
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (node->input(i).node == nullptr) {
        return InvalidArgument("Input ", i, " of node '", node->name(), "' is not connected");
      }
    }
  }
  WEFT_ASSIGN_OR_RETURN(loops.layout, LayOutFrames(loops.order, graph.max_id()));
  loops.places.resize(loops.layout.frames.size());
  for (const Node* node : loops.order) {
    const std::string& device = node->assigned_device();
    // The inner one of an Enter's and an Exit's two frames: it was found later.
    int frame = std::max(loops.layout.runs_in[node->id()], loops.layout.leads_to[node->id()]);
    for (; frame > 0; frame = loops.layout.frames[frame].parent) {
      loops.places[frame].try_emplace(place_of(device), device);
    }
  }
  return loops;
}

class Driver {
 public:
  Driver(const PlaceOf& place_of, Graph* graph) : place_of_(place_of), graph_(graph) {}

  StatusOr<LoopDrivers> Run() {
    WEFT_RETURN_IF_ERROR(CopyConstantEnters());
    WEFT_ASSIGN_OR_RETURN(loops_, FindLoops(*graph_, place_of_));
    WEFT_RETURN_IF_ERROR(CheckMerges());
    // A loop comes behind the one that it is in.
    for (int frame = 1; frame < static_cast<int>(loops_.places.size()); ++frame) {
      if (loops_.places[frame].size() > 1) WEFT_RETURN_IF_ERROR(DriveFrame(frame));
    }
    LoopDrivers drivers;
    WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_->TopologicalOrder());
    WEFT_ASSIGN_OR_RETURN(drivers.layout, LayOutFrames(order, graph_->max_id()));
    for (Node* merge : merges_) {
      drivers.merges[{drivers.layout.runs_in[merge->id()], PlaceOfNode(*merge)}] = merge;
    }
    return drivers;
  }

 private:
  std::string PlaceOfNode(const Node& node) const { return place_of_(node.assigned_device()); }

  // A value that is the same in each iteration crosses once, before the loop.
  Status CopyConstantEnters() {
    for (Node* enter : graph_->nodes()) {
      const bool is_value = enter->num_outputs() > 0 && !enter->output_type(0).is_ref;
      if (!enter->LowersTo(InstructionKind::kEnter) || !is_value ||
          !FindAttrOr<bool>(enter->attrs(), "is_constant", false))
        continue;
      std::map<std::string, Node*> copies{{PlaceOfNode(*enter), enter}};
      for (const Consumer& reader : std::vector<Consumer>(enter->consumers())) {
        Node*& copy = copies[PlaceOfNode(*reader.node)];
        if (copy == nullptr) {
          NodeDef def{.name = graph_->UniqueName(enter->name()), .op = "Enter"};
          def.attrs = enter->attrs();
          const Endpoint inputs[] = {enter->input(0)};
          WEFT_ASSIGN_OR_RETURN(copy,
                                graph_->AddNode(std::move(def), inputs, enter->control_inputs()));
          copy->set_assigned_device(reader.node->assigned_device());
        }
        if (copy == enter) continue;
        if (reader.input == kControlPort) {
          graph_->RemoveControlEdge(enter, reader.node);
          graph_->AddControlEdge(copy, reader.node);
        } else {
          WEFT_RETURN_IF_ERROR(graph_->SetInput(reader.node, reader.input, {copy, 0}));
        }
      }
      if (enter->consumers().empty() && copies.size() > 1) graph_->RemoveNode(enter);
    }
    return absl::OkStatus();
  }

  // What enters is there in the first iteration only, what goes round in all others: neither could
  // be received once in each.
  Status CheckMerges() const {
    for (const Node* node : loops_.order) {
      const bool goes_round = node->LowersTo(InstructionKind::kNextIteration);
      if (!goes_round && !node->LowersTo(InstructionKind::kEnter)) continue;
      if (FindAttrOr<bool>(node->attrs(), "is_constant", false)) continue;
      for (const Consumer& reader : node->consumers()) {
        if (PlaceOfNode(*reader.node) == PlaceOfNode(*node)) continue;
        return Unimplemented("Node '", node->name(), "' at ", PlaceOfNode(*node), " and '",
                             reader.node->name(), "', which reads it, at ",
                             PlaceOfNode(*reader.node),
                             " are ends of one variable of a loop: give them one device");
      }
    }
    return absl::OkStatus();
  }

  Status DriveFrame(int frame) {
    Node* condition = nullptr;
    for (Node* node : loops_.order) {
      if (node->LowersTo(InstructionKind::kLoopCondition) &&
          loops_.layout.runs_in[node->id()] == frame)
        condition = node;
    }
    const LoopFrame& info = loops_.layout.frames[frame];
    if (condition == nullptr) {
      return InvalidArgument("The loop '", info.name, "' has no LoopCond but spans ",
                             loops_.places[frame].begin()->first, " and ",
                             loops_.places[frame].rbegin()->first);
    }
    for (const auto& [place, device] : loops_.places[frame]) {
      Node* local = condition;
      if (place != PlaceOfNode(*condition)) {
        WEFT_ASSIGN_OR_RETURN(local, CopyCondition(condition, place, device));
      }
      const auto parent = bodies_.find({info.parent, place});
      WEFT_ASSIGN_OR_RETURN(
          bodies_[std::make_pair(frame, place)],
          AddDriver(info, local, parent == bodies_.end() ? nullptr : parent->second, device));
    }
    return absl::OkStatus();
  }

  // Who asks at `place` whether the loop goes on asks the copy: the news cross once.
  StatusOr<Node*> CopyCondition(Node* condition, const std::string& place,
                                const std::string& device) {
    const std::vector<Consumer> readers = condition->consumers();
    WEFT_ASSIGN_OR_RETURN(Node * copy,
                          Add("LoopCond", {}, {{condition, 0}}, {}, condition->name(), device));
    for (const Consumer& reader : readers) {
      if (PlaceOfNode(*reader.node) != place) continue;
      if (reader.input == kControlPort) {
        graph_->RemoveControlEdge(condition, reader.node);
        graph_->AddControlEdge(copy, reader.node);
      } else {
        WEFT_RETURN_IF_ERROR(graph_->SetInput(reader.node, reader.input, {copy, 0}));
      }
    }
    return copy;
  }

  // Gives a node that is alive in the iterations whose body runs.
  StatusOr<Node*> AddDriver(const LoopFrame& info, Node* condition, Node* parent,
                            const std::string& device) {
    const std::string name = absl::StrCat(info.name, "/_driver");
    WEFT_ASSIGN_OR_RETURN(Tensor nothing, Tensor::Zeros(DType::kFloat, Shape{0}));
    std::vector<Node*> after;
    if (parent != nullptr) after.push_back(parent);
    AttrMap value;
    value["dtype"] = DType::kFloat;
    value["value"] = std::move(nothing);
    WEFT_ASSIGN_OR_RETURN(Node * start, Add("Const", value, {}, after, name, device));
    AttrMap type;
    type["T"] = DType::kFloat;
    AttrMap loop = type;
    loop["frame_name"] = info.name;
    loop["parallel_iterations"] = static_cast<int64_t>(info.parallel_iterations);
    WEFT_ASSIGN_OR_RETURN(Node * enter, Add("Enter", loop, {{start, 0}}, {}, name, device));
    AttrMap both = type;
    both["N"] = int64_t{2};
    both[kDriverAttr] = true;
    WEFT_ASSIGN_OR_RETURN(Node * merge,
                          Add("Merge", both, {{enter, 0}, {enter, 0}}, {}, name, device));
    WEFT_ASSIGN_OR_RETURN(Node * turn,
                          Add("Switch", type, {{merge, 0}, {condition, 0}}, {}, name, device));
    WEFT_ASSIGN_OR_RETURN(Node * body, Add("Identity", type, {{turn, 1}}, {}, name, device));
    WEFT_ASSIGN_OR_RETURN(Node * next, Add("NextIteration", type, {{body, 0}}, {}, name, device));
    WEFT_RETURN_IF_ERROR(graph_->SetInput(merge, 1, {next, 0}));
    merges_.push_back(merge);
    return body;
  }

  StatusOr<Node*> Add(absl::string_view op, AttrMap attrs, const std::vector<Endpoint>& inputs,
                      const std::vector<Node*>& controls, const std::string& name,
                      const std::string& device) {
    NodeDef def{.name = graph_->UniqueName(name), .op = std::string(op), .device = device};
    def.attrs = std::move(attrs);
    WEFT_ASSIGN_OR_RETURN(Node * node, graph_->AddNode(std::move(def), inputs, controls));
    node->set_assigned_device(device);
    return node;
  }

  const PlaceOf& place_of_;
  Graph* const graph_;
  Loops loops_;
  std::map<std::pair<int, std::string>, Node*> bodies_;  // by frame and place
  std::vector<Node*> merges_;
};

}  // namespace

StatusOr<bool> HasSpanningLoops(const Graph& graph, const PlaceOf& place_of) {
  bool has_loops = false;
  for (const Node* node : graph.nodes())
    has_loops = has_loops || node->LowersTo(InstructionKind::kEnter);
  if (!has_loops) return false;
  WEFT_ASSIGN_OR_RETURN(const Loops loops, FindLoops(graph, place_of));
  for (const auto& places : loops.places) {
    if (places.size() > 1) return true;
  }
  return false;
}

StatusOr<LoopDrivers> DriveLoops(const PlaceOf& place_of, Graph* graph) {
  return Driver(place_of, graph).Run();
}

}  // namespace weft::compile
