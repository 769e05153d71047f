// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/frames.h"

#include <map>
#include <utility>

namespace weft::compile {

namespace {

class Layout {
 public:
  explicit Layout(int max_id) {
    layout_.frames.push_back({});
    layout_.runs_in.assign(max_id, 0);
    layout_.leads_to.assign(max_id, 0);
  }

  Status Add(const Node& node) {
    WEFT_ASSIGN_OR_RETURN(const int frame, FrameOf(node));
    layout_.runs_in[node.id()] = frame;
    int& leads_to = layout_.leads_to[node.id()];
    leads_to = frame;
    if (node.LowersTo(InstructionKind::kEnter)) {
      WEFT_ASSIGN_OR_RETURN(leads_to, Enter(node, frame));
    } else if (node.LowersTo(InstructionKind::kExit)) {
      leads_to = layout_.frames[frame].parent;
      if (leads_to < 0)
        return InvalidArgument("Node '", node.name(), "' is an Exit outside of any loop");
    }
    return absl::OkStatus();
  }

  FrameLayout Take() && { return std::move(layout_); }

 private:
  StatusOr<int> FrameOf(const Node& node) const {
    const Node* first = nullptr;
    const auto agree = [&](const Node* source) {
      if (first == nullptr) first = source;
      if (layout_.leads_to[source->id()] == layout_.leads_to[first->id()]) return Status();
      return InvalidArgument("Node '", node.name(), "' has inputs from different frames: '",
                             first->name(), "' is in '", NameOf(*first), "', '", source->name(),
                             "' in '", NameOf(*source), "'");
    };
    for (const Endpoint& input : node.inputs()) {
      if (input.node->LowersTo(InstructionKind::kNextIteration)) continue;
      WEFT_RETURN_IF_ERROR(agree(input.node));
    }
    for (const Node* control : node.control_inputs()) {
      if (control->LowersTo(InstructionKind::kNextIteration)) continue;
      WEFT_RETURN_IF_ERROR(agree(control));
    }
    return first == nullptr ? 0 : layout_.leads_to[first->id()];
  }

  StatusOr<int> Enter(const Node& node, int parent) {
    WEFT_ASSIGN_OR_RETURN(const std::string name, node.Attr<std::string>("frame_name"));
    WEFT_ASSIGN_OR_RETURN(const int64_t parallel, node.Attr<int64_t>("parallel_iterations"));
    if (parallel < 1) {
      return InvalidArgument("Node '", node.name(), "' allows ", parallel,
                             " parallel iterations: expected 1 or more");
    }
    const auto [found, is_new] =
        by_name_.try_emplace({parent, name}, static_cast<int>(layout_.frames.size()));
    if (is_new) {
      layout_.frames.push_back(
          {.name = name,
           .parent = parent,
           .parallel_iterations = static_cast<int>(std::min<int64_t>(parallel, 1 << 20))});
    }
    ++layout_.frames[found->second].num_enters;
    return found->second;
  }

  std::string NameOf(const Node& node) const {
    return layout_.frames[layout_.leads_to[node.id()]].name;
  }

  FrameLayout layout_;
  std::map<std::pair<int, std::string>, int> by_name_;
};

}  // namespace

StatusOr<FrameLayout> LayOutFrames(const std::vector<Node*>& order, int max_id) {
  Layout layout(max_id);
  for (const Node* node : order) WEFT_RETURN_IF_ERROR(layout.Add(*node));
  return std::move(layout).Take();
}

}  // namespace weft::compile
