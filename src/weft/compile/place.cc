// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/place.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "weft/compile/frames.h"

namespace weft::compile {
namespace {

constexpr absl::string_view kColocationPrefix = "loc:@";

bool IsCallEnd(const Node& node) { return node.op() == "_Arg" || node.op() == "_Retval"; }

bool IsMetadataOp(const std::string& op) {
  return op == "Shape" || op == "ShapeN" || op == "Size" || op == "Rank";
}

// Nodes that must share a device, as a forest over node ids; the root holds what the group asks
// for.
class Groups {
 public:
  explicit Groups(int count) : parents_(count), wishes_(count), fixed_(count) {
    std::iota(parents_.begin(), parents_.end(), 0);
  }

  int Root(int id) {
    while (parents_[id] != id) {
      parents_[id] = parents_[parents_[id]];
      id = parents_[id];
    }
    return id;
  }
  DeviceName& wish(int id) { return wishes_[Root(id)]; }
  std::string& fixed(int id) { return fixed_[Root(id)]; }

  // `strict`: two wishes that contradict are an error; otherwise those of `a` win.
  Status Join(const Node& a, const Node& b, bool soft, bool strict) {
    const int first = Root(a.id());
    const int second = Root(b.id());
    if (first == second) return absl::OkStatus();
    if (!fixed_[first].empty() && !fixed_[second].empty() && fixed_[first] != fixed_[second]) {
      return Conflict(a, b,
                      absl::StrCat("they are already at ", fixed_[first], " and ", fixed_[second]));
    }
    StatusOr<DeviceName> merged = wishes_[first].MergedWith(wishes_[second], soft);
    if (!merged.ok() && strict && fixed_[first].empty() && fixed_[second].empty()) {
      return Conflict(a, b, merged.status().message());
    }
    if (merged.ok()) wishes_[first] = *std::move(merged);
    if (fixed_[first].empty()) fixed_[first] = fixed_[second];
    parents_[second] = first;
    return absl::OkStatus();
  }

 private:
  static Status Conflict(const Node& a, const Node& b, absl::string_view why) {
    return InvalidArgument("Cannot colocate nodes {{colocation_node ", a.name(),
                           "}} and {{colocation_node ", b.name(), "}}: ", why);
  }
  std::vector<int> parents_;
  std::vector<DeviceName> wishes_;  // by root
  std::vector<std::string> fixed_;  // by root: where an earlier placement put a member
};

class Placer {
 public:
  Placer(const PlaceOptions& options, Graph* graph)
      : options_(options), graph_(graph), nodes_(graph->nodes()), groups_(graph->max_id()) {}

  Status Run() {
    WEFT_RETURN_IF_ERROR(ReadWishes());
    WEFT_RETURN_IF_ERROR(JoinClasses());
    WEFT_RETURN_IF_ERROR(JoinHandles());
    WEFT_RETURN_IF_ERROR(KeepLoopsTogether());
    Index();
    for (Node* node : nodes_) WEFT_RETURN_IF_ERROR(PlaceNode(*node));
    WEFT_RETURN_IF_ERROR(PlaceFollowers());
    for (Node* node : nodes_) node->set_assigned_device(groups_.fixed(node->id()));
    return absl::OkStatus();
  }

 private:
  Status ReadWishes() {
    for (const Node* node : nodes_) {
      StatusOr<DeviceName> wish = DeviceName::Parse(node->requested_device());
      if (!wish.ok()) return Annotate(wish.status(), absl::StrCat("Node '", node->name(), "'"));
      groups_.wish(node->id()) = *std::move(wish);
      groups_.fixed(node->id()) = node->assigned_device();
    }
    return absl::OkStatus();
  }

  Status JoinClasses() {
    for (const Node* node : nodes_) {
      const auto found = node->attrs().find("_class");
      if (found == node->attrs().end()) continue;
      const auto* classes = found->second.As<AttrValue::StringList>();
      if (classes == nullptr) continue;
      for (absl::string_view entry : *classes) {
        if (!absl::ConsumePrefix(&entry, kColocationPrefix)) continue;
        const Node* other = graph_->Find(entry);
        if (other == nullptr) {
          return InvalidArgument("Node '", node->name(),
                                 "' expects to be colocated with unknown node '", entry, "'");
        }
        WEFT_RETURN_IF_ERROR(groups_.Join(*other, *node, options_.soft, /*strict=*/true));
      }
    }
    return absl::OkStatus();
  }

  // References and handles are only good where they were made.
  Status JoinHandles() {
    for (const Node* node : nodes_) {
      if (IsCallEnd(*node)) continue;
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Node* source = node->input(i).node;
        const ArgType& type = node->input_type(i);
        if (source == nullptr || IsCallEnd(*source)) continue;
        if (!type.is_ref && type.dtype != DType::kResource) continue;
        WEFT_RETURN_IF_ERROR(groups_.Join(*source, *node, options_.soft, /*strict=*/false));
      }
    }
    return absl::OkStatus();
  }

  // The task that a node's group asks for or is at; none if any would do.
  std::optional<DeviceName> TaskOf(const Node& node) {
    DeviceName task = groups_.wish(node.id());
    if (!groups_.fixed(node.id()).empty()) {
      if (StatusOr<DeviceName> at = DeviceName::Parse(groups_.fixed(node.id())); at.ok())
        task = *at;
    }
    if (!task.job) return std::nullopt;
    task.type.reset();
    task.index.reset();
    return task;
  }

  // A loop runs on one task, and clients give its counters and its gradient no device: nodes of a
  // loop that name no task go where the others of it are.
  Status KeepLoopsTogether() {
    const auto starts_loop = [](const Node* node) {
      return node->op() == "Enter" || node->op() == "RefEnter";
    };
    if (std::none_of(nodes_.begin(), nodes_.end(), starts_loop)) return absl::OkStatus();
    WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_->TopologicalOrder());
    const StatusOr<FrameLayout> layout = LayOutFrames(order, graph_->max_id());
    if (!layout.ok()) return absl::OkStatus();      // what is wrong is told to who runs it
    std::map<int, std::vector<const Node*>> loops;  // by outermost frame
    for (const Node* node : order) {
      int frame = std::max(layout->runs_in[node->id()], layout->leads_to[node->id()]);
      while (frame > 0 && layout->frames[frame].parent > 0) frame = layout->frames[frame].parent;
      if (frame > 0) loops[frame].push_back(node);
    }
    // A gradient's loop is tied to the loop it belongs to by stacks: as often as one moves another.
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [frame, members] : loops) moved = Gather(members) || moved;
    }
    return absl::OkStatus();
  }

  // True if a node was given a task that had none.
  bool Gather(const std::vector<const Node*>& members) {
    std::optional<DeviceName> task;
    for (const Node* node : members) {
      if (task && node->op() != "LoopCond") continue;
      if (std::optional<DeviceName> own = TaskOf(*node)) task = std::move(own);
    }
    bool moved = false;
    for (const Node* node : members) {
      if (!task || TaskOf(*node)) continue;
      StatusOr<DeviceName> merged = groups_.wish(node->id()).MergedWith(*task, options_.soft);
      if (!merged.ok()) continue;
      groups_.wish(node->id()) = *std::move(merged);
      moved = true;
    }
    return moved;
  }

  void Index() {
    for (const Node* node : nodes_) members_[groups_.Root(node->id())].push_back(node);
  }

  bool HasKernels(int root, const std::string& device_type) {
    for (const Node* node : members_[root]) {
      const std::vector<KernelDef>* kernels = options_.kernels->KernelsOf(node->op());
      if (kernels == nullptr) continue;  // an instruction of the plan, or compiling will tell
      const bool any = std::any_of(kernels->begin(), kernels->end(), [&](const KernelDef& kernel) {
        return kernel.device_type == device_type;
      });
      if (!any) return false;
    }
    return true;
  }

  // The device for a group that asks for `wish`, or none.
  std::optional<DeviceName> Choose(int root, const DeviceName& wish) {
    const auto fits = [&](const DeviceName& device) {
      return wish.Matches(device) && HasKernels(root, *device.type);
    };
    if (fits(options_.default_device)) return options_.default_device;
    for (const DeviceName& device : options_.devices) {
      if (fits(device)) return device;
    }
    return std::nullopt;
  }

  Status PlaceNode(const Node& node) {
    const int root = groups_.Root(node.id());
    if (!groups_.fixed(root).empty()) return absl::OkStatus();
    DeviceName wish = groups_.wish(root);
    if (wish == DeviceName() && IsFollower(root, node)) return absl::OkStatus();
    std::optional<DeviceName> chosen = Choose(root, wish);
    if (!chosen && options_.soft) {
      wish.index.reset();
      chosen = Choose(root, wish);
      wish.type.reset();
      if (!chosen) chosen = Choose(root, wish);
    }
    if (!chosen) return NoDevice(node, groups_.wish(root));
    groups_.fixed(root) = chosen->ToString();
    return absl::OkStatus();
  }

  Status NoDevice(const Node& node, const DeviceName& wish) const {
    return InvalidArgument(
        "Cannot assign a device for operation ", node.name(), ": {{node ", node.name(),
        "}} was explicitly assigned to ", wish.ToString(), " but available devices are [ ",
        absl::StrJoin(
            options_.devices, ", ",
            [](std::string* out, const DeviceName& d) { absl::StrAppend(out, d.ToString()); }),
        " ]",
        options_.other_tasks.empty()
            ? ""
            : absl::StrCat(" and those of ", absl::StrJoin(options_.other_tasks, ", ")),
        ". Make sure the device specification refers to a valid device.\n\t [[{{node ", node.name(),
        "}}]]");
  }

  // A lone node without a wish that makes something out of nothing, or only looks at a shape, goes
  // where its neighbour is: its output, or its input, need not travel then.
  bool IsFollower(int root, const Node& node) {
    if (members_[root].size() != 1 || IsCallEnd(node) || node.num_outputs() != 1) return false;
    if (node.output_type(0).is_ref || node.output_type(0).dtype == DType::kResource) return false;
    const bool follows = (node.num_inputs() == 0 && !node.schema().is_stateful) ||
                         (IsMetadataOp(node.op()) && node.num_inputs() == 1);
    if (follows) followers_.push_back(&node);
    return follows;
  }

  Status PlaceFollowers() {
    // Consumers of consumers were added later: go backwards.
    for (auto it = followers_.rbegin(); it != followers_.rend(); ++it) {
      const Node& node = **it;
      std::string device;
      if (node.num_inputs() == 1) {
        if (node.input(0).node != nullptr) device = groups_.fixed(node.input(0).node->id());
      } else {
        device = DeviceOfConsumers(node);
      }
      const bool usable = !device.empty() && HasKernels(groups_.Root(node.id()), TypeOf(device));
      groups_.fixed(node.id()) = usable ? device : options_.default_device.ToString();
    }
    return absl::OkStatus();
  }

  static std::string TypeOf(const std::string& device) {
    StatusOr<DeviceName> name = DeviceName::Parse(device);
    return name.ok() ? name->type.value_or("") : "";
  }

  // Empty unless all are at one place.
  std::string DeviceOfConsumers(const Node& node) {
    std::string device;
    for (const Consumer& consumer : node.consumers()) {
      const std::string& at = groups_.fixed(consumer.node->id());
      if (at.empty() || (!device.empty() && device != at)) return std::string();
      device = at;
    }
    return device;
  }

  const PlaceOptions& options_;
  Graph* const graph_;
  const std::vector<Node*> nodes_;
  Groups groups_;
  absl::flat_hash_map<int, std::vector<const Node*>> members_;  // by root
  std::vector<const Node*> followers_;
};

}  // namespace

Status PlaceGraph(const PlaceOptions& options, Graph* graph) {
  return Placer(options, graph).Run();
}

}  // namespace weft::compile
