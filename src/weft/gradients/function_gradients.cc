// SPDX-License-Identifier: Apache-2.0
#include "weft/gradients/function_gradients.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/gradients/body_gradient.h"
#include "weft/gradients/loop_gradient.h"
#include "weft/graph/function.h"

namespace weft::gradients {
namespace {

// A call, If or Case: one of several functions runs on the node's inputs.
class BranchGradient {
 public:
  explicit BranchGradient(GradientContext& c)
      : c_(c),
        builder_(c.builder()),
        graph_(c.builder().graph()),
        node_(*c.output(0).node),
        is_call_(node_.LowersTo(InstructionKind::kCall)),
        first_(is_call_ ? 0 : 1),
        num_inputs_(node_.num_inputs() - first_),
        num_outputs_(node_.num_outputs()) {}

  Status Run() {
    WEFT_RETURN_IF_ERROR(FindFunctions());
    if (is_call_) {
      const std::string* named = graph_.FindGradientFunction(functions_[0].name);
      if (named != nullptr) return CallNamedGradient(*named);
    }
    WEFT_RETURN_IF_ERROR(Differentiate());
    if (num_wanted_ == 0) return absl::OkStatus();
    std::vector<FunctionRef> forward, back;
    for (size_t k = 0; k < bodies_.size(); ++k) {
      WEFT_ASSIGN_OR_RETURN(FunctionRef function, MakeGradient(k));
      back.push_back(std::move(function));
    }
    for (size_t k = 0; k < bodies_.size() && num_kept_ > 0; ++k) {
      WEFT_ASSIGN_OR_RETURN(FunctionRef function, MakeForward(k));
      forward.push_back(std::move(function));
    }
    if (num_kept_ > 0) WEFT_RETURN_IF_ERROR(Widen(forward));
    return AddGradientNode(back);
  }

 private:
  Status FindFunctions() {
    WEFT_ASSIGN_OR_RETURN(functions_, FunctionsOf(graph_, node_.op(), node_.attrs()));
    return absl::OkStatus();
  }

  bool IsDirectCall() const { return graph_.FindFunction(node_.op()) != nullptr; }

  Status CallNamedGradient(const std::string& name) {
    const FunctionDef* function = graph_.FindFunction(name);
    if (function == nullptr) return NotFound("Gradient function '", name, "' is not defined");
    std::vector<Endpoint> inputs(node_.inputs().begin(), node_.inputs().end());
    std::vector<DType> types;
    for (const Endpoint& input : inputs) types.push_back(input.node->output_type(input.port).dtype);
    for (int i = 0; i < num_outputs_; ++i) {
      inputs.push_back(c_.gradient(i) ? c_.gradient(i) : c_.Op("ZerosLike", {c_.output(i)}));
    }
    if (function->signature.outputs.size() != types.size()) {
      return InvalidArgument("Gradient function '", name, "' gives ",
                             function->signature.outputs.size(), " results for ", types.size(),
                             " inputs");
    }
    Node* call = builder_.AddNode(
        function->signature.is_stateful ? "StatefulPartitionedCall" : "PartitionedCall", {inputs},
        {{"f", FunctionRef{name, nullptr}}, {"Tout", types}});
    for (int i = 0; call != nullptr && i < num_inputs_; ++i) {
      if (IsFloating(types[i]) || IsComplex(types[i])) c_.set_input(i, {call, i});
    }
    return builder_.status();
  }

  Status Differentiate() {
    seeded_.resize(num_outputs_);
    for (int i = 0; i < num_outputs_; ++i) seeded_[i] = static_cast<bool>(c_.gradient(i));
    wanted_.resize(num_inputs_);
    std::vector<DType> types(num_inputs_);
    for (const FunctionRef& function : functions_) {
      WEFT_ASSIGN_OR_RETURN(auto body, BodyGradient::Make(function, graph_, seeded_, c_.source()));
      if (body->num_arguments() != num_inputs_) {
        return InvalidArgument("Function '", function.name, "' takes ", body->num_arguments(),
                               " arguments, got ", num_inputs_);
      }
      for (int i = 0; i < num_inputs_; ++i) {
        if (!body->gradient(i)) continue;
        num_wanted_ += wanted_[i] ? 0 : 1;
        wanted_[i] = true;
        types[i] = body->gradient_type(i);
      }
      bodies_.push_back(std::move(body));
    }
    is_read_.resize(num_inputs_);
    for (const auto& body : bodies_) {
      for (int i = 0; i < num_inputs_; ++i) {
        if (wanted_[i]) WEFT_RETURN_IF_ERROR(body->NeedGradient(i, types[i]));
      }
      BodyGradient::Reads reads = body->FindReads(wanted_);
      for (int i = 0; i < num_inputs_; ++i) is_read_[i] = is_read_[i] || reads.arguments[i];
      num_kept_ += static_cast<int>(reads.tensors.size());
      std::vector<DType> kept_types;
      for (const Endpoint& tensor : reads.tensors) {
        kept_types.push_back(tensor.node->output_type(tensor.port).dtype);
      }
      kept_types_.push_back(std::move(kept_types));
      kept_.push_back(std::move(reads.tensors));
    }
    for (int i = 0; i < num_inputs_; ++i) {
      if (wanted_[i]) result_types_.push_back(types[i]);
    }
    return absl::OkStatus();
  }

  // Takes dL/d(outputs), then the inputs and the inner tensors that any branch reads.
  StatusOr<FunctionRef> MakeGradient(size_t which) {
    Graph graph = graph_.EmptyTwin();
    GraphBuilder inner(&graph);
    int index = 0;
    const auto argument = [&](DType dtype) { return AddArgument(inner, {dtype, {}}, index++); };
    const auto type = [](const Endpoint& t) { return t.node->output_type(t.port).dtype; };
    BodyGradient::Replacements now;
    const BodyGradient& body = *bodies_[which];
    for (int i = 0; i < num_outputs_; ++i) {
      if (seeded_[i]) now.seeds[i] = argument(type(c_.gradient(i)));
    }
    for (int i = 0; i < num_inputs_; ++i) {
      if (is_read_[i]) now.tensors[body.argument(i)] = argument(type(node_.input(first_ + i)));
    }
    for (size_t k = 0; k < bodies_.size(); ++k) {
      for (size_t i = 0; i < kept_[k].size(); ++i) {
        const Endpoint given = argument(kept_types_[k][i]);
        if (k == which) now.tensors[kept_[k][i]] = given;
      }
    }
    WEFT_ASSIGN_OR_RETURN(const auto gradients, body.CopyGradients(wanted_, now, inner));
    for (size_t i = 0; i < gradients.size(); ++i) {
      AddResult(inner, gradients[i], static_cast<int>(i));
    }
    WEFT_RETURN_IF_ERROR(inner.status());
    return AddToLibrary(graph, absl::StrCat(functions_[which].name, "_gradient"));
  }

  // The function with the inner tensors of all branches behind its results; those of the others are
  // never read.
  StatusOr<FunctionRef> MakeForward(size_t which) {
    BodyGradient& body = *bodies_[which];
    Graph& graph = body.TakeBody();
    int index = num_outputs_;
    for (size_t k = 0; k < bodies_.size(); ++k) {
      for (size_t i = 0; i < kept_[k].size(); ++i) {
        Endpoint result = kept_[k][i];
        if (k != which) {
          result = body.builder().Op("FakeParam", {},
                                     {{"dtype", kept_types_[k][i]}, {"shape", PartialShape()}});
        }
        AddResult(body.builder(), result, index++);
      }
    }
    WEFT_RETURN_IF_ERROR(body.builder().status());
    return AddToLibrary(graph, absl::StrCat(functions_[which].name, "_forward"));
  }

  StatusOr<FunctionRef> AddToLibrary(const Graph& body, const std::string& wish) {
    const std::string name = UniqueFunctionName(graph_, wish);
    WEFT_ASSIGN_OR_RETURN(FunctionDef function, FunctionFromGraph(body, name));
    WEFT_RETURN_IF_ERROR(graph_.AddFunction(std::move(function)));
    return FunctionRef{name, nullptr};
  }

  Status Widen(const std::vector<FunctionRef>& forward) {
    if (IsDirectCall()) return graph_.Widen(&node_, forward[0].name, {}, {});
    AttrMap attrs = node_.attrs();
    WEFT_ASSIGN_OR_RETURN(auto types, node_.Attr<AttrValue::TypeList>("Tout"));
    for (const std::vector<DType>& more : kept_types_) {
      types.insert(types.end(), more.begin(), more.end());
    }
    const char* shapes = is_call_ ? "_output_shapes" : "output_shapes";
    if (auto known = FindAttr<AttrValue::ShapeList>(attrs, shapes); known.ok() && !known->empty()) {
      known->resize(types.size());
      attrs[shapes] = *std::move(known);
    }
    attrs["Tout"] = std::move(types);
    SetFunctions(forward, &attrs);
    return graph_.Widen(&node_, node_.op(), std::move(attrs), {});
  }

  void SetFunctions(const std::vector<FunctionRef>& functions, AttrMap* attrs) const {
    if (is_call_) {
      (*attrs)["f"] = functions[0];
      return;
    }
    size_t next = 0;
    for (const AttrSchema& attr : node_.schema().attrs) {
      if (attr.kind == "func") (*attrs)[attr.name] = functions[next++];
      if (attr.kind == "list(func)") (*attrs)[attr.name] = functions;
    }
  }

  Status AddGradientNode(const std::vector<FunctionRef>& functions) {
    std::vector<Endpoint> inputs;
    for (int i = 0; i < num_outputs_; ++i) {
      if (seeded_[i]) inputs.push_back(c_.gradient(i));
    }
    for (int i = 0; i < num_inputs_; ++i) {
      if (is_read_[i]) inputs.push_back(node_.input(first_ + i));
    }
    for (int i = 0; i < num_kept_; ++i) inputs.push_back({&node_, num_outputs_ + i});
    AttrMap attrs{{"Tout", result_types_}};
    SetFunctions(functions, &attrs);
    std::vector<Argument> arguments{inputs};
    if (first_ == 1) arguments.insert(arguments.begin(), node_.input(0));
    std::string op = node_.op();
    if (IsDirectCall())
      op = node_.schema().is_stateful ? "StatefulPartitionedCall" : "PartitionedCall";
    Node* back = builder_.AddNode(op, arguments, std::move(attrs));
    int port = 0;
    for (int i = 0; back != nullptr && i < num_inputs_; ++i) {
      if (wanted_[i]) c_.set_input(first_ + i, {back, port++});
    }
    return builder_.status();
  }

  GradientContext& c_;
  GraphBuilder& builder_;
  Graph& graph_;
  Node& node_;
  const bool is_call_;  // else it chooses one of its functions
  const int first_;     // input that is the functions' first argument
  const int num_inputs_;
  const int num_outputs_;
  std::vector<FunctionRef> functions_;
  std::vector<std::unique_ptr<BodyGradient>> bodies_;
  std::vector<bool> seeded_;   // by output
  std::vector<bool> wanted_;   // by argument: has a gradient in some branch
  std::vector<bool> is_read_;  // by argument: the gradients read it
  int num_wanted_ = 0;
  std::vector<std::vector<Endpoint>> kept_;  // by branch: inner tensors that its gradient reads
  std::vector<std::vector<DType>> kept_types_;
  std::vector<DType> result_types_;
  int num_kept_ = 0;
};

}  // namespace

bool HasFunctions(const Node& node) {
  return node.LowersTo(InstructionKind::kCall) || node.LowersTo(InstructionKind::kBranch) ||
         node.LowersTo(InstructionKind::kLoop);
}

Status FunctionGradients(GradientContext& c) {
  if (c.node().LowersTo(InstructionKind::kLoop)) return LoopGradient(c);
  return BranchGradient(c).Run();
}

}  // namespace weft::gradients
