// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/place.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"

#include "weft/compile/frames.h"
#include "weft/compile/remote_calls.h"

namespace weft::compile {
namespace {

constexpr absl::string_view kColocationPrefix = "loc:@";
// The type of device whose kernels work in the host's memory and that every task has.
constexpr char kHostType[] = "CPU";

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

  // `strict`: two wishes that contradict are an error or, if `soft`, leave the nodes apart, as in
  // TensorFlow, whose own client names such neighbours in gradients of loops; otherwise those of
  // `a` win.
  Status Join(const Node& a, const Node& b, bool soft, bool strict) {
    const int first = Root(a.id());
    const int second = Root(b.id());
    if (first == second) return absl::OkStatus();
    if (!fixed_[first].empty() && !fixed_[second].empty() && fixed_[first] != fixed_[second]) {
      if (strict && soft) return absl::OkStatus();
      return Conflict(a, b,
                      absl::StrCat("they are already at ", fixed_[first], " and ", fixed_[second]));
    }
    StatusOr<DeviceName> merged = wishes_[first].MergedWith(wishes_[second], soft);
    if (!merged.ok() && strict) {
      if (soft) return absl::OkStatus();
      if (fixed_[first].empty() && fixed_[second].empty())
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
    WEFT_RETURN_IF_ERROR(JoinLoopVariables());
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
      // Where an earlier placement put it, its neighbour may have been cut off since, or become
      // what it calls.
      if (!node->assigned_device().empty()) continue;
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

  // A call, branch or loop that is given handles which were asked to be at several devices: its
  // body says what runs where, and lowering takes the handles there as they are.
  bool TakesHandlesOfSeveral(const Node& node) const {
    if (!node.LowersTo(InstructionKind::kCall) && !node.LowersTo(InstructionKind::kBranch) &&
        !node.LowersTo(InstructionKind::kLoop) && graph_->FindFunction(node.op()) == nullptr)
      return false;
    const std::string* first = nullptr;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const Node* source = node.input(i).node;
      if (source == nullptr || node.input_type(i).dtype != DType::kResource) continue;
      const std::string& asked = source->requested_device();
      if (asked.empty()) continue;
      if (first != nullptr && *first != asked) return true;
      first = &asked;
    }
    return false;
  }

  // References and handles are only good where they were made.
  Status JoinHandles() {
    for (const Node* node : nodes_) {
      if (node->IsCallEnd() || TakesHandlesOfSeveral(*node)) continue;
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Node* source = node->input(i).node;
        const ArgType& type = node->input_type(i);
        if (source == nullptr || source->IsCallEnd()) continue;
        if (!type.is_ref && type.dtype != DType::kResource) continue;
        WEFT_RETURN_IF_ERROR(groups_.Join(*source, *node, options_.soft, /*strict=*/false));
      }
    }
    return absl::OkStatus();
  }

  // What goes into a variable of a loop, at first and from each iteration, is where its Merge is.
  Status JoinLoopVariables() {
    for (const Node* node : nodes_) {
      if (!node->LowersTo(InstructionKind::kMerge)) continue;
      for (const Endpoint& input : node->inputs()) {
        if (input.node == nullptr) continue;
        if (!input.node->LowersTo(InstructionKind::kNextIteration) &&
            !input.node->LowersTo(InstructionKind::kEnter))
          continue;
        WEFT_RETURN_IF_ERROR(groups_.Join(*node, *input.node, /*soft=*/true, /*strict=*/false));
      }
    }
    return absl::OkStatus();
  }

  // What a node's group asks for or is at; none if any device would do.
  std::optional<DeviceName> WishOf(const Node& node) {
    if (!groups_.fixed(node.id()).empty()) {
      if (StatusOr<DeviceName> at = DeviceName::Parse(groups_.fixed(node.id())); at.ok())
        return *at;
    }
    const DeviceName& wish = groups_.wish(node.id());
    if (wish == DeviceName()) return std::nullopt;
    return wish;
  }

  // A loop may span devices and tasks, but each crossing costs in every iteration, and clients give
  // its counters and its gradient no device: what says nothing goes where others of the loop are.
  Status KeepLoopsTogether() {
    const auto starts_loop = [](const Node* node) {
      return node->LowersTo(InstructionKind::kEnter);
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

  // True if a node was told where to be that could have been anywhere, or at any task.
  bool Gather(const std::vector<const Node*>& members) {
    std::optional<DeviceName> there;
    for (const Node* node : members) {
      std::optional<DeviceName> own = WishOf(*node);
      if (!own) continue;
      // The condition's first; else the first that says the task.
      const bool is_condition = node->LowersTo(InstructionKind::kLoopCondition);
      if (!there || is_condition || (!there->job && own->job)) there = std::move(own);
      if (is_condition && there->job) break;
    }
    bool moved = false;
    for (const Node* node : members) {
      if (!there) break;
      const std::optional<DeviceName> own = WishOf(*node);
      if (own && (own->job || !there->job)) continue;
      StatusOr<DeviceName> merged = groups_.wish(node->id()).MergedWith(*there, /*soft=*/true);
      if (!merged.ok() || *merged == groups_.wish(node->id())) continue;
      groups_.wish(node->id()) = *std::move(merged);
      moved = true;
    }
    return moved;
  }

  void Index() {
    for (const Node* node : nodes_) members_[groups_.Root(node->id())].push_back(node);
  }

  // True if `op` has a kernel there, or is an instruction of the plan, or compiling will tell that
  // there is none.
  bool HasKernel(const std::string& op, const AttrMap& attrs, const std::string& device_type) {
    const std::vector<KernelDef>* kernels = options_.kernels->KernelsOf(op);
    if (kernels == nullptr) return true;
    if (options_.kernels->Find(op, attrs, device_type).ok()) return true;
    return device_type == kHostType &&
           std::any_of(kernels->begin(), kernels->end(),
                       [](const KernelDef& kernel) { return kernel.device_type == kHostType; });
  }

  // The same of all ops in the functions that `op` calls; `seen` are those looked at already.
  bool FunctionsHaveKernels(const std::string& op, const AttrMap& attrs,
                            const std::string& device_type, std::set<std::string>* seen) {
    std::vector<std::string> called;
    if (graph_->FindFunction(op) != nullptr) called.push_back(op);
    for (const auto& [name, value] : attrs) {
      if (const auto* one = value.As<FunctionRef>()) called.push_back(one->name);
      if (const auto* list = value.As<AttrValue::FunctionList>()) {
        for (const FunctionRef& function : *list) called.push_back(function.name);
      }
    }
    for (const std::string& name : called) {
      const FunctionDef* function = graph_->FindFunction(name);
      if (function == nullptr || !seen->insert(name).second) continue;
      for (const NodeDef& node : function->nodes) {
        if (!HasKernel(node.op, node.attrs, device_type) ||
            !FunctionsHaveKernels(node.op, node.attrs, device_type, seen))
          return false;
      }
    }
    return true;
  }

  // A member of the group that has no kernel on devices of this type; null if all have.
  const Node* WithoutKernel(int root, const std::string& device_type) {
    for (const Node* node : members_[root]) {
      std::set<std::string> seen;
      if (!HasKernel(node->op(), node->attrs(), device_type) ||
          (device_type != kHostType &&
           !FunctionsHaveKernels(node->op(), node->attrs(), device_type, &seen)))
        return node;
    }
    return nullptr;
  }
  bool HasKernels(int root, const std::string& device_type) {
    return WithoutKernel(root, device_type) == nullptr;
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

  // Another number, or else another kind of device of the same task.
  std::optional<DeviceName> ChooseSoftly(int root, DeviceName wish) {
    wish.index.reset();
    std::optional<DeviceName> chosen = Choose(root, wish);
    wish.type.reset();
    return chosen ? chosen : Choose(root, wish);
  }

  Status PlaceNode(const Node& node) {
    const int root = groups_.Root(node.id());
    if (!groups_.fixed(root).empty()) return absl::OkStatus();
    const DeviceName wish = groups_.wish(root);
    if (wish == DeviceName() && IsFollower(root, node)) return absl::OkStatus();
    std::optional<DeviceName> chosen = Choose(root, wish);
    if (!chosen && options_.soft) chosen = ChooseSoftly(root, wish);
    if (!chosen) return NoDevice(node, root);
    groups_.fixed(root) = chosen->ToString();
    return absl::OkStatus();
  }

  Status NoDevice(const Node& node, int root) {
    const DeviceName& wish = groups_.wish(root);
    for (const DeviceName& device : options_.devices) {
      if (!wish.Matches(device)) continue;
      const Node* lacks = WithoutKernel(groups_.Root(node.id()), *device.type);
      if (lacks != nullptr) return NoKernel(node, wish, *lacks, *device.type);
    }
    std::string hints;
    if (wish.type == "GPU") {
      hints = " The requested device appears to be a GPU, but CUDA is not enabled.";
    }
    if (!options_.soft && ChooseSoftly(root, wish)) {
      absl::StrAppend(
          &hints,
          " To let it run on another device of the task, set allow_soft_placement in the "
          "session's ConfigProto, or start the server with --soft_placement.");
    }
    const auto name_of = [](std::string* out, const DeviceName& device) {
      absl::StrAppend(out, device.ToString());
    };
    const std::string others =
        options_.other_tasks.empty()
            ? ""
            : absl::StrCat(" and those of ", absl::StrJoin(options_.other_tasks, ", "));
    return InvalidArgument("Cannot assign a device for operation ", node.name(), ": {{node ",
                           node.name(), "}} was explicitly assigned to ", wish.ToString(),
                           " but available devices are [ ",
                           absl::StrJoin(options_.devices, ", ", name_of), " ]", others,
                           ". Make sure the device specification refers to a valid device.", hints,
                           "\n\t [[{{node ", node.name(), "}}]]");
  }

  Status NoKernel(const Node& node, const DeviceName& wish, const Node& lacks,
                  const std::string& device_type) const {
    std::set<std::string> types;
    if (const auto* kernels = options_.kernels->KernelsOf(lacks.op()); kernels != nullptr) {
      for (const KernelDef& kernel : *kernels) types.insert(kernel.device_type);
    }
    return InvalidArgument(
        "Cannot assign a device for operation ", node.name(),
        ": Could not satisfy explicit device specification '", wish.ToString(),
        "' because no supported kernel for ", device_type, " devices is available for op ",
        lacks.op(), lacks.name() == node.name() ? "" : absl::StrCat(" ('", lacks.name(), "')"),
        ", which has kernels for [ ", absl::StrJoin(types, ", "), " ]. Available devices are [ ",
        absl::StrJoin(
            options_.devices, ", ",
            [](std::string* out, const DeviceName& d) { absl::StrAppend(out, d.ToString()); }),
        " ]. With allow_soft_placement it runs where it has a kernel.\n\t [[{{node ", node.name(),
        "}}]]");
  }

  // A lone node without a wish that makes something out of nothing, or only looks at a shape, goes
  // where its neighbour is: its output, or its input, need not travel then.
  bool IsFollower(int root, const Node& node) {
    if (members_[root].size() != 1 || node.IsCallEnd() || node.num_outputs() != 1) return false;
    if (node.output_type(0).is_ref || node.output_type(0).dtype == DType::kResource) return false;
    const bool follows = (node.num_inputs() == 0 && !node.schema().is_stateful) ||
                         (node.traits().tells != ShapeFact::kNone && node.num_inputs() == 1);
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
  WEFT_RETURN_IF_ERROR(LowerRemoteCalls(graph));
  return Placer(options, graph).Run();
}

}  // namespace weft::compile
