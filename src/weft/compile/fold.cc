// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "base/cancellation.h"
#include "base/denormals.h"
#include "weft/compile/passes.h"
#include "weft/graph/known_shapes.h"
#include "weft/kernel/kernel_context.h"
#include "weft/kernel/make_op_kernel.h"

namespace weft::compile {
namespace {

// A folded value may be this large, and larger only if it is no larger than what it is made of.
constexpr size_t kMostBytes = 64 << 10;

bool IsConstant(const Node& node) { return node.traits().source == ValueSource::kConstant; }

class Folder {
 public:
  Folder(const PlanOptions& options, Graph* graph) : options_(options), graph_(graph) {}

  Status Run() {
    WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> order, graph_->TopologicalOrder());
    has_branches_ = HasBranches(order);
    for (Node* node : order) {
      if (IsConstant(*node)) {
        Remember(node);
        continue;
      }
      std::optional<std::vector<Tensor>> values = ValuesOf(*node);
      if (values && Fits(*node, *values)) {
        WEFT_RETURN_IF_ERROR(Replace(node, *values));
      } else {
        shapes_.Infer(*node).IgnoreError();  // the kernel says what is wrong
        if (IsItsInput(node)) Skip(node);
      }
    }
    return absl::OkStatus();
  }

 private:
  void Remember(Node* constant) {
    StatusOr<Tensor> value = constant->Attr<Tensor>("value");
    // One that disagrees with its own type is no constant: its kernel refuses it.
    if (!value.ok() || value->dtype() != constant->output_type(0).dtype) return;
    shapes_.Set(*constant, {PartialShape(value->shape())});
    constants_[{constant, 0}] = *std::move(value);
  }

  const Tensor* ConstantOf(const Endpoint& endpoint) const {
    const auto found = constants_.find(endpoint);
    return found == constants_.end() ? nullptr : &found->second;
  }

  // The node's outputs, if they can be told before any step.
  std::optional<std::vector<Tensor>> ValuesOf(const Node& node) {
    if (node.num_outputs() == 0 || node.schema().is_stateful) return std::nullopt;
    for (int i = 0; i < node.num_inputs(); ++i) {
      if (node.input(i).node == nullptr || node.input_type(i).is_ref) return std::nullopt;
    }
    for (const ArgType& type : node.output_types()) {
      if (type.is_ref || !(IsPlain(type.dtype) || type.dtype == DType::kString))
        return std::nullopt;
    }
    if (auto told = ValuesOfShapes(node)) return told;
    // Sources that are not Const are arguments and placeholders.
    if (node.num_inputs() == 0) return std::nullopt;
    for (const Endpoint& input : node.inputs()) {
      if (ConstantOf(input) == nullptr) return std::nullopt;
    }
    return Compute(node);
  }

  std::optional<std::vector<Tensor>> ValuesOfShapes(const Node& node) {
    const ShapeFact fact = node.traits().tells;
    if (fact == ShapeFact::kNone) return std::nullopt;
    // A constant runs where its control inputs put it: it would leave its branch or loop.
    if (has_branches_) return std::nullopt;
    std::vector<Tensor> values;
    for (int i = 0; i < node.num_inputs(); ++i) {
      const StatusOr<Shape> defined = shapes_.Of(node.input(i)).ToShape();
      if (!defined.ok()) return std::nullopt;
      const Shape& shape = *defined;
      std::vector<int64_t> numbers;
      if (fact == ShapeFact::kRank) {
        numbers = {shape.rank()};
      } else if (fact == ShapeFact::kNumElements) {
        numbers = {shape.num_elements()};
      } else {
        for (int d = 0; d < shape.rank(); ++d) numbers.push_back(shape.dim(d));
      }
      const Shape out =
          fact == ShapeFact::kSizes ? Shape{static_cast<int64_t>(numbers.size())} : Shape();
      if (node.output_type(i).dtype == DType::kInt64) {
        values.push_back(Tensor::FromSpan<int64_t>(out, numbers));
        continue;
      }
      std::vector<int32_t> narrow;
      for (const int64_t number : numbers) {
        if (number > INT32_MAX) return std::nullopt;  // the kernel says what is wrong
        narrow.push_back(static_cast<int32_t>(number));
      }
      values.push_back(Tensor::FromSpan<int32_t>(out, narrow));
    }
    return values;
  }

  std::optional<std::vector<Tensor>> Compute(const Node& node) const {
    const auto def = options_.kernels->Find(node.call(), options_.device->type());
    if (!def.ok() || (*def)->cost == KernelCost::kBlocking) return std::nullopt;
    const StatusOr<std::unique_ptr<OpKernel>> kernel =
        MakeOpKernel(**def, node.call(), options_.device);
    if (!kernel.ok() || (*kernel)->is_async()) return std::nullopt;
    std::vector<Value> inputs(node.num_inputs());
    std::vector<Value> outputs(node.num_outputs());
    KernelContext::Binding binding{.call = &node.call()};
    for (int i = 0; i < node.num_inputs(); ++i) {
      inputs[i].tensor = *ConstantOf(node.input(i));
      binding.inputs.push_back(&inputs[i].tensor);
      binding.input_values.push_back(&inputs[i]);
      binding.input_is_last_use.push_back(false);
    }
    for (Value& output : outputs) binding.outputs.push_back(&output);
    Cancellation cancellation;
    const StepEnvironment environment{.device = options_.device, .cancellation = &cancellation};
    KernelContext context(std::move(binding));
    context.set_environment(&environment);
    try {
      if (!(*kernel)->Compute(context).ok()) return std::nullopt;
    } catch (...) {
      return std::nullopt;  // the step meets it again and says what it is
    }
    std::vector<Tensor> values;
    for (Value& output : outputs) {
      if (output.is_dead || output.variable || !output.tensor.IsInitialized()) return std::nullopt;
      values.push_back(std::move(output.tensor));
    }
    return values;
  }

  // Whether the node passes its first input on as it is: a reduction over no axes, a view of the
  // same shape.
  bool IsItsInput(Node* at) {
    const Node& node = *at;
    const OpTraits& traits = node.traits();
    if (node.num_outputs() != 1 || node.schema().is_stateful || !node.control_inputs().empty() ||
        node.num_inputs() == 0 || node.input_type(0).is_ref || node.input(0).node == nullptr ||
        node.input_type(0).dtype != node.output_type(0).dtype) {
      return false;
    }
    if (has_branches_) {
      // Something waits for exactly this node.
      for (const Consumer& consumer : node.consumers()) {
        if (consumer.input == kControlPort) return false;
      }
    }
    if (traits.passes_on_without > 0) {
      const Tensor* value = ConstantOf(node.input(traits.passes_on_without));
      return value != nullptr && value->num_elements() == 0;
    }
    if (traits.passes_on != PassesOn::kView) return false;
    const StatusOr<Shape> before = shapes_.Of(node.input(0)).ToShape();
    const StatusOr<Shape> after = shapes_.Of({at, 0}).ToShape();
    return before.ok() && after.ok() && *before == *after;
  }

  // Lets readers of the node, and who waits for it, turn to its first input.
  void Skip(Node* node) {
    const Endpoint source = node->input(0);
    graph_->RedirectConsumers({node, 0}, source);
    for (const Consumer& consumer : std::vector<Consumer>(node->consumers())) {
      if (consumer.input == kControlPort) graph_->AddControlEdge(source.node, consumer.node);
    }
    Remove(node);
  }

  // Constants that lose their last reader go with the node: nothing else asks for them.
  void Remove(Node* node) {
    std::vector<Node*> sources;
    for (const Endpoint& input : node->inputs()) sources.push_back(input.node);
    graph_->RemoveNode(node);
    for (Node* source : sources) {
      if (removed_.contains(source) || !IsConstant(*source) || !source->consumers().empty())
        continue;
      constants_.erase({source, 0});
      removed_.insert(source);
      graph_->RemoveNode(source);
    }
  }

  bool Fits(const Node& node, const std::vector<Tensor>& values) const {
    size_t made = 0;
    size_t given = 0;
    for (const Tensor& value : values) made += value.size_bytes();
    for (const Endpoint& input : node.inputs()) {
      if (const Tensor* constant = ConstantOf(input)) given += constant->size_bytes();
    }
    return made <= kMostBytes || made <= given;
  }

  Status Replace(Node* node, const std::vector<Tensor>& values) {
    // Control inputs of the constants it read still say when, and in which branch or loop, it runs.
    std::vector<Node*> controls = node->control_inputs();
    for (const Endpoint& input : node->inputs()) {
      const std::vector<Node*>& more = input.node->control_inputs();
      if (IsConstant(*input.node)) controls.insert(controls.end(), more.begin(), more.end());
    }
    std::sort(controls.begin(), controls.end(),
              [](const Node* a, const Node* b) { return a->id() < b->id(); });
    controls.erase(std::unique(controls.begin(), controls.end()), controls.end());
    for (int o = 0; o < node->num_outputs(); ++o) {
      NodeDef def{.name = graph_->UniqueName(absl::StrCat(node->name(), "/folded")),
                  .op = "Const",
                  .device = node->requested_device()};
      def.attrs["dtype"] = values[o].dtype();
      def.attrs["value"] = values[o];
      WEFT_ASSIGN_OR_RETURN(Node * constant, graph_->AddNode(std::move(def), {}, controls));
      constant->set_assigned_device(node->assigned_device());
      Remember(constant);
      graph_->RedirectConsumers({node, o}, {constant, 0});
      if (o > 0) continue;
      for (const Consumer& consumer : std::vector<Consumer>(node->consumers())) {
        if (consumer.input == kControlPort) graph_->AddControlEdge(constant, consumer.node);
      }
    }
    Remove(node);
    return absl::OkStatus();
  }

  const PlanOptions& options_;
  Graph* const graph_;
  absl::flat_hash_map<Endpoint, Tensor> constants_;
  // A variable by reference may be assigned another shape (validate_shape = false).
  KnownShapes shapes_{KnownShapes::References::kUnknown};
  absl::flat_hash_set<Node*> removed_;
  bool has_branches_ = false;
};

}  // namespace

Status FoldConstants(const PlanOptions& options, Graph* graph) {
  const ScopedFlushDenormals flush;  // as kernels of a step have it
  return Folder(options, graph).Run();
}

}  // namespace weft::compile
