// SPDX-License-Identifier: Apache-2.0
#include "weft/compile/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "weft/compile/host_copies.h"
#include "weft/compile/order.h"
#include "weft/compile/passes.h"
#include "weft/compile/wanted.h"
#include "weft/graph/function.h"
#include "weft/kernel/make_op_kernel.h"

namespace weft::compile {
namespace {

// What the system adds ("_Send") is named anew for each signature: the same name may stand for
// another edge there.
bool HasStateToKeep(const Node& node) {
  return node.schema().is_stateful && !absl::StartsWith(node.op(), "_");
}

// By name, or within the graph that it is given.
bool TakesFunctions(const OpSchema& schema) {
  const bool takes_graph =
      std::any_of(schema.inputs.begin(), schema.inputs.end(),
                  [](const ArgSchema& input) { return input.name == "graph_def"; });
  return takes_graph ||
         std::any_of(schema.attrs.begin(), schema.attrs.end(), [](const AttrSchema& attr) {
           return attr.kind == "func" || attr.kind == "list(func)";
         });
}

}  // namespace

// Attributes that start with '_' are hints.
std::string ScopeOf(const FunctionRef& function) {
  std::string scope = function.name;
  if (function.attrs == nullptr) return scope;
  for (const auto& [name, value] : *function.attrs) {
    if (!absl::StartsWith(name, "_")) absl::StrAppend(&scope, ",", name, "=", value.ToString());
  }
  return scope;
}

StatusOr<std::shared_ptr<OpKernel>> KernelCache::GetOrMake(
    const std::string& scope, const Node& node,
    absl::FunctionRef<StatusOr<std::unique_ptr<OpKernel>>()> make) {
  const std::pair<std::string, std::string> key{scope, node.name()};
  {
    absl::MutexLock lock(&mutex_);
    const auto found = kernels_.find(key);
    if (found != kernels_.end()) return found->second;
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<OpKernel> made, make());
  absl::MutexLock lock(&mutex_);
  return kernels_.try_emplace(key, std::move(made)).first->second;
}

class PlanBuilder {
 public:
  PlanBuilder(Graph graph, const PlanOptions& options)
      : options_(options), plan_(new Plan(std::move(graph), options)) {
    if (options.device->memory() != nullptr) {
      // Copies to the host wait for the device.
      plan_->is_straight_line_ = false;
      plan_->ends_with_sync_ = options.scope.empty();
    }
  }

  Status Build() {
    WEFT_ASSIGN_OR_RETURN(std::vector<Node*> order, InstructionOrder(plan_->graph_));
    first_slot_.resize(plan_->graph_.max_id(), 0);
    position_.resize(plan_->graph_.max_id(), 0);
    for (size_t i = 0; i < order.size(); ++i) {
      position_[order[i]->id()] = static_cast<int>(i);
      first_slot_[order[i]->id()] = plan_->num_slots_;
      plan_->num_slots_ += order[i]->num_outputs();
    }
    WEFT_ASSIGN_OR_RETURN(layout_, LayOutFrames(order, plan_->graph_.max_id()));
    plan_->uses_.assign(plan_->num_slots_, 0);
    for (Node* node : order) WEFT_RETURN_IF_ERROR(AddInstruction(node));
    for (size_t i = 0; i < order.size(); ++i) {
      if (plan_->instructions_[i].kind != InstructionKind::kKernel) continue;
      layout_.frames[layout_.runs_in[order[i]->id()]].kernels.push_back(static_cast<int>(i));
    }
    plan_->frames_ = std::move(layout_.frames);
    FindLastUses();
    return CheckIndices();
  }

  std::unique_ptr<Plan> Take() { return std::move(plan_); }

 private:
  Status AddInstruction(Node* node) {
    Instruction instruction;
    instruction.node = node;
    instruction.first_output = first_slot_[node->id()];
    instruction.num_outputs = node->num_outputs();
    for (int i = 0; i < node->num_inputs(); ++i) {
      const Endpoint& input = node->input(i);
      if (input.node == nullptr) {
        return InvalidArgument("Input ", i, " of node '", node->name(), "' is not connected");
      }
      const int slot = first_slot_[input.node->id()] + input.port;
      instruction.inputs.push_back(slot);
      ++plan_->uses_[slot];
      if (input.node->output_type(input.port).is_ref && !node->input_type(i).is_ref) {
        instruction.reference_reads.push_back({i, slot, plan_->num_scratch_++});
      }
    }
    instruction.num_dependencies =
        node->num_inputs() + static_cast<int>(node->control_inputs().size());
    instruction.num_controls = static_cast<int>(node->control_inputs().size());
    instruction.frame = layout_.leads_to[node->id()];
    for (const Consumer& consumer : node->consumers()) {
      instruction.dependents.push_back(
          {position_[consumer.node->id()], consumer.input, consumer.port});
    }
    WEFT_RETURN_IF_ERROR(ChooseKind(node, &instruction));
    const bool straight = instruction.kind == InstructionKind::kKernel ||
                          instruction.kind == InstructionKind::kArgument ||
                          instruction.kind == InstructionKind::kResult;
    if (!straight || instruction.is_async || instruction.cost == KernelCost::kBlocking) {
      plan_->is_straight_line_ = false;
    }
    plan_->instructions_.push_back(std::move(instruction));
    return absl::OkStatus();
  }

  Status ChooseKind(Node* node, Instruction* instruction) {
    using Kind = InstructionKind;
    instruction->kind = node->traits().lowers_to;
    switch (instruction->kind) {
      case Kind::kKernel:
        return MakeKernelOf(node, instruction);
      case Kind::kArgument:
        return AddIndexed(node, node->output_type(0).dtype, &plan_->argument_types_, instruction);
      case Kind::kResult:
        return AddIndexed(node, node->input_type(0).dtype, &plan_->result_types_, instruction);
      case Kind::kCall:
      case Kind::kBranch:
      case Kind::kLoop:
        return AddChildren(node, instruction);
      case Kind::kEnter:
      case Kind::kExit:
      case Kind::kNextIteration:
      case Kind::kLoopCondition:
        return absl::OkStatus();
      case Kind::kSwitch:
      case Kind::kMerge:
        return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  Status MakeKernelOf(Node* node, Instruction* instruction) {
    WEFT_ASSIGN_OR_RETURN(const KernelDef* def,
                          options_.kernels->Find(node->call(), options_.device->type()));
    const auto make = [&]() -> StatusOr<std::unique_ptr<OpKernel>> {
      StatusOr<std::unique_ptr<OpKernel>> kernel =
          MakeOpKernel(*def, node->call(), options_.device);
      if (kernel.ok()) return kernel;
      return Annotate(kernel.status(), absl::StrCat("Node '", node->name(), "'"));
    };
    std::shared_ptr<OpKernel> kernel;
    if (options_.cache != nullptr && HasStateToKeep(*node)) {
      WEFT_ASSIGN_OR_RETURN(kernel, options_.cache->GetOrMake(options_.scope, *node, make));
    } else {
      WEFT_ASSIGN_OR_RETURN(std::unique_ptr<OpKernel> made, make());
      kernel = std::move(made);
    }
    instruction->kernel = kernel.get();
    if (TakesFunctions(node->schema())) plan_->calls_functions_ = true;
    instruction->is_async = kernel->is_async();
    instruction->changes_variable = ChangesVariable(*node);
    instruction->cost = def->cost;
    plan_->kernels_.push_back(std::move(kernel));
    return absl::OkStatus();
  }

  static Status AddIndexed(const Node* node, DType dtype, std::vector<DType>* types,
                           Instruction* instruction) {
    WEFT_ASSIGN_OR_RETURN(const int64_t index, node->Attr<int64_t>("index"));
    if (index < 0 || index > (1 << 20)) {
      return InvalidArgument("Node '", node->name(), "' has a bad index: ", index);
    }
    instruction->index = static_cast<int>(index);
    if (types->size() <= static_cast<size_t>(index)) types->resize(index + 1, DType::kInvalid);
    if ((*types)[index] != DType::kInvalid) {
      return InvalidArgument("Node '", node->name(), "' has an index used before: ", index);
    }
    (*types)[index] = dtype;
    return absl::OkStatus();
  }

  Status AddChildren(Node* node, Instruction* instruction) {
    StatusOr<std::vector<FunctionRef>> functions =
        FunctionsOf(plan_->graph_, node->op(), node->attrs());
    if (!functions.ok()) {
      return Annotate(functions.status(), absl::StrCat("Node '", node->name(), "'"));
    }
    for (const FunctionRef& function : *functions) {
      const bool is_condition =
          instruction->kind == InstructionKind::kLoop && instruction->children.empty();
      StatusOr<const Plan*> child = AddChild(function, is_condition);
      if (!child.ok()) {
        return Annotate(child.status(), absl::StrCat("Node '", node->name(), "'"));
      }
      instruction->children.push_back(*child);
    }
    return absl::OkStatus();
  }

  StatusOr<const Plan*> AddChild(const FunctionRef& function, bool is_condition) {
    WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Plan> child,
                          plan_->CompileFunction(function, is_condition));
    plan_->children_.push_back(std::move(child));
    return plan_->children_.back().get();
  }

  void FindLastUses() {
    std::vector<int> last(plan_->num_slots_, -1);
    for (size_t i = 0; i < plan_->instructions_.size(); ++i) {
      const Instruction& instruction = plan_->instructions_[i];
      for (int o = 0; o < instruction.num_outputs; ++o) {
        last[instruction.first_output + o] = static_cast<int>(i);
      }
      for (int slot : instruction.inputs) last[slot] = std::max(last[slot], static_cast<int>(i));
    }
    for (int slot = 0; slot < plan_->num_slots_; ++slot) {
      if (last[slot] >= 0) plan_->instructions_[last[slot]].releases.push_back(slot);
    }
  }

  // Results may be spread over devices, arguments that nothing reads have no node: gaps are fine
  // here and judged by whoever joins the parts. An index beyond all nodes is not.
  Status CheckIndices() const {
    const size_t most = plan_->instructions_.size() + (1 << 16);
    if (plan_->argument_types_.size() > most || plan_->result_types_.size() > most) {
      return InvalidArgument("Indices of arguments or results are out of range");
    }
    return absl::OkStatus();
  }

  const PlanOptions& options_;
  std::unique_ptr<Plan> plan_;
  std::vector<int> first_slot_;  // by node id
  std::vector<int> position_;    // by node id
  FrameLayout layout_;
};

StatusOr<std::unique_ptr<Plan>> Plan::CompileFunction(const FunctionRef& function,
                                                      bool results_on_host) const {
  NeedFinder::Memory memory;
  WEFT_ASSIGN_OR_RETURN(Graph body, InstantiateWanted(function, graph_, &memory));
  PlanOptions options = options_;
  options.scope = ScopeOf(function);
  options.results_on_host = results_on_host;
  StatusOr<std::unique_ptr<Plan>> plan = Compile(std::move(body), options);
  if (plan.ok()) return plan;
  return Annotate(plan.status(), absl::StrCat("Function '", function.name, "'"));
}

std::shared_ptr<const Plan> Plan::LibraryAlone(const Graph& other) const {
  PlanOptions options = options_;
  options.cache = nullptr;
  options.scope.clear();
  return std::shared_ptr<const Plan>(new Plan(other.EmptyTwin(), options));
}

StatusOr<std::unique_ptr<Plan>> Plan::Compile(Graph graph, const PlanOptions& options) {
  WEFT_RETURN_IF_ERROR(RunPasses(options, &graph));
  WEFT_RETURN_IF_ERROR(PutInCopies(options, &graph));
  PlanBuilder builder(std::move(graph), options);
  WEFT_RETURN_IF_ERROR(builder.Build());
  return builder.Take();
}

}  // namespace weft::compile
