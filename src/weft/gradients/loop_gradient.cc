// SPDX-License-Identifier: Apache-2.0
#include "weft/gradients/loop_gradient.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weft/compile/function_body.h"
#include "weft/gradients/body_gradient.h"
#include "weft/gradients/gradients.h"
#include "weft/graph/function.h"

namespace weft::gradients {
namespace {

// The arguments from which gradients of results in `from` may come, by position.
StatusOr<std::vector<bool>> ArgumentsBehind(const Graph& body, const std::vector<bool>& from) {
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> arguments,
                        EndsByIndex(body, InstructionKind::kArgument));
  WEFT_ASSIGN_OR_RETURN(const std::vector<Node*> results,
                        EndsByIndex(body, InstructionKind::kResult));
  if (arguments.size() != from.size() || results.size() != from.size()) {
    return InvalidArgument("The body of a loop of ", from.size(), " variables takes ",
                           arguments.size(), " and gives ", results.size());
  }
  std::vector<bool> reached(body.max_id(), false);
  std::vector<Node*> stack;
  for (size_t i = 0; i < results.size(); ++i) {
    if (from[i]) stack.push_back(results[i]);
  }
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (reached[node->id()]) continue;
    reached[node->id()] = true;
    if (node->definition().has_no_gradient && !node->LowersTo(InstructionKind::kResult)) continue;
    for (int i = 0; i < node->num_inputs(); ++i) {
      if (CarriesGradients(node->input_type(i).dtype)) stack.push_back(node->input(i).node);
    }
  }
  std::vector<bool> behind;
  for (const Node* argument : arguments) behind.push_back(reached[argument->id()]);
  return behind;
}

class Loop {
 public:
  explicit Loop(GradientContext& c)
      : c_(c),
        builder_(c.builder()),
        graph_(c.builder().graph()),
        node_(*c.output(0).node),
        num_variables_(node_.num_inputs()) {}

  Status Run() {
    WEFT_ASSIGN_OR_RETURN(body_, node_.Attr<FunctionRef>("body"));
    WEFT_ASSIGN_OR_RETURN(condition_, node_.Attr<FunctionRef>("cond"));
    WEFT_RETURN_IF_ERROR(FindCarried());
    WEFT_ASSIGN_OR_RETURN(back_, BodyGradient::Make(body_, graph_, carried_, c_.source()));
    WEFT_RETURN_IF_ERROR(FindWanted());
    WEFT_RETURN_IF_ERROR(FindReads());
    WEFT_ASSIGN_OR_RETURN(const FunctionRef gradient, MakeGradientBody());
    WEFT_RETURN_IF_ERROR(KeepIterations());
    return AddGradientLoop(gradient);
  }

 private:
  bool IsHandle(int i) const { return node_.input_type(i).dtype == DType::kResource; }

  // The variables whose gradient goes from iteration to iteration. Those that a gradient comes for,
  // and what they depend on in any number of iterations.
  Status FindCarried() {
    const FunctionDef* definition = graph_.FindFunction(body_.name);
    if (definition == nullptr) return NotFound("Function '", body_.name, "' is not defined");
    const AttrMap none;
    WEFT_ASSIGN_OR_RETURN(
        const Graph body,
        compile::InstantiateFunction(*definition, body_.attrs ? *body_.attrs : none, graph_));
    carried_.resize(num_variables_);
    for (int i = 0; i < num_variables_; ++i) carried_[i] = c_.gradient(i) && !IsHandle(i);
    for (bool grows = true; grows;) {
      grows = false;
      WEFT_ASSIGN_OR_RETURN(const std::vector<bool> behind, ArgumentsBehind(body, carried_));
      for (int i = 0; i < num_variables_; ++i) {
        if (!behind[i] || carried_[i] || IsHandle(i)) continue;
        if (!CarriesGradients(node_.input_type(i).dtype)) continue;
        carried_[i] = grows = true;
      }
    }
    return absl::OkStatus();
  }

  // Of handles of variables the iterations' gradients are summed.
  Status FindWanted() {
    wanted_ = carried_;
    types_.resize(num_variables_);
    for (int i = 0; i < num_variables_; ++i) {
      types_[i] = node_.input_type(i).dtype;
      if (carried_[i]) WEFT_RETURN_IF_ERROR(back_->NeedGradient(i, types_[i]));
      if (!IsHandle(i)) continue;
      wanted_[i] = static_cast<bool>(back_->gradient(i));
      if (wanted_[i]) types_[i] = back_->gradient_type(i);
      if (wanted_[i] && !IsInvariant(i)) {
        return Unimplemented("Loop variable ", i,
                             " is a handle of another variable in each iteration");
      }
    }
    return absl::OkStatus();
  }

  bool IsInvariant(int i) const { return back_->result(i) == back_->argument(i); }

  // What stays the same in all iterations is read as it is, the rest is kept for each.
  Status FindReads() {
    BodyGradient::Reads reads = back_->FindReads(wanted_);
    passed_.resize(num_variables_);
    for (int i = 0; i < num_variables_; ++i) {
      passed_[i] = reads.arguments[i] && IsInvariant(i);
      if (reads.arguments[i] && !passed_[i]) reads.tensors.push_back(back_->argument(i));
    }
    kept_ = std::move(reads.tensors);
    for (const Endpoint& tensor : kept_) {
      kept_types_.push_back(tensor.node->output_type(tensor.port).dtype);
    }
    return absl::OkStatus();
  }

  // (iterations left, gradients..., lists..., what stays the same...) -> the same, one iteration
  // further back.
  StatusOr<FunctionRef> MakeGradientBody() {
    Graph graph = graph_.EmptyTwin();
    GraphBuilder inner(&graph);
    BodyGradient::Replacements now;
    std::vector<Endpoint> results;
    const auto argument = [&](DType dtype) {
      loop_types_.push_back(dtype);
      return AddArgument(inner, {dtype, {}}, static_cast<int>(loop_types_.size()) - 1);
    };
    results.push_back(inner.Op("Sub", {argument(DType::kInt32), inner.Scalar<int32_t>(1)}));
    std::vector<Endpoint> before;
    for (int i = 0; i < num_variables_; ++i) {
      if (!wanted_[i]) continue;
      before.push_back(argument(types_[i]));
      if (carried_[i]) now.seeds[i] = before.back();
    }
    std::vector<Endpoint> lists;
    for (size_t k = 0; k < kept_.size(); ++k) {
      Node* popped =
          inner.AddNode("TensorListPopBack", {argument(DType::kVariant), inner.Scalar<int32_t>(-1)},
                        {{"element_dtype", kept_types_[k]}});
      lists.push_back({popped, 0});
      now.tensors[kept_[k]] = {popped, 1};
    }
    std::vector<Endpoint> passed;
    for (int i = 0; i < num_variables_; ++i) {
      if (!passed_[i]) continue;
      passed.push_back(argument(node_.input_type(i).dtype));
      now.tensors[back_->argument(i)] = passed.back();
    }
    WEFT_RETURN_IF_ERROR(inner.status());
    WEFT_ASSIGN_OR_RETURN(std::vector<Endpoint> after, back_->CopyGradients(wanted_, now, inner));
    size_t at = 0;
    for (int i = 0; i < num_variables_; ++i) {
      if (!wanted_[i]) continue;
      if (IsHandle(i)) after[at] = inner.Op("AddV2", {before[at], after[at]});
      ++at;
    }
    for (const auto* part : {&after, &lists, &passed}) {
      results.insert(results.end(), part->begin(), part->end());
    }
    return Finish(inner, results, 0, absl::StrCat(body_.name, "_gradient"));
  }

  // Adds `results` from position `first` on and puts the function into the library.
  StatusOr<FunctionRef> Finish(GraphBuilder& body, const std::vector<Endpoint>& results, int first,
                               const std::string& wish) {
    for (const Endpoint& result : results) AddResult(body, result, first++);
    WEFT_RETURN_IF_ERROR(body.status());
    const std::string name = UniqueFunctionName(graph_, wish);
    WEFT_ASSIGN_OR_RETURN(FunctionDef function, FunctionFromGraph(body.graph(), name));
    WEFT_RETURN_IF_ERROR(graph_.AddFunction(std::move(function)));
    return FunctionRef{name, nullptr};
  }

  // The loop gets a count of its iterations and a list for each tensor to keep.
  Status KeepIterations() {
    AttrMap attrs = node_.attrs();
    std::vector<DType> types;
    for (int i = 0; i < num_variables_; ++i) types.push_back(node_.input_type(i).dtype);
    types.push_back(DType::kInt32);
    types.resize(types.size() + kept_.size(), DType::kVariant);
    WEFT_ASSIGN_OR_RETURN(attrs["body"], KeepingBody());
    WEFT_ASSIGN_OR_RETURN(attrs["cond"], KeepingCondition());
    if (auto known = FindAttr<AttrValue::ShapeList>(attrs, "output_shapes");
        known.ok() && !known->empty()) {
      known->resize(types.size());
      attrs["output_shapes"] = *std::move(known);
    }
    attrs["T"] = std::move(types);
    std::vector<Endpoint> more{builder_.Scalar<int32_t>(0)};
    for (const DType dtype : kept_types_) {
      const Endpoint any = builder_.Scalar<int32_t>(-1);
      more.push_back(builder_.Op("EmptyTensorList", {any, any}, {{"element_dtype", dtype}}));
    }
    WEFT_RETURN_IF_ERROR(builder_.status());
    return graph_.Widen(&node_, node_.op(), std::move(attrs), more);
  }

  StatusOr<FunctionRef> KeepingBody() {
    back_->TakeBody();
    GraphBuilder& body = back_->builder();
    int index = num_variables_;
    const Endpoint count = AddArgument(body, {DType::kInt32, Shape()}, index++);
    std::vector<Endpoint> results{body.Op("AddV2", {count, body.Scalar<int32_t>(1)})};
    for (const Endpoint& tensor : kept_) {
      const Endpoint list = AddArgument(body, {DType::kVariant, Shape()}, index++);
      results.push_back(body.Op("TensorListPushBack", {list, tensor}));
    }
    return Finish(body, results, num_variables_, absl::StrCat(body_.name, "_forward"));
  }

  StatusOr<FunctionRef> KeepingCondition() {
    const FunctionDef* definition = graph_.FindFunction(condition_.name);
    if (definition == nullptr) return NotFound("Function '", condition_.name, "' is not defined");
    const AttrMap none;
    WEFT_ASSIGN_OR_RETURN(Graph graph,
                          compile::InstantiateFunction(
                              *definition, condition_.attrs ? *condition_.attrs : none, graph_));
    GraphBuilder body(&graph);
    int index = num_variables_;
    AddArgument(body, {DType::kInt32, Shape()}, index++);
    for (size_t k = 0; k < kept_.size(); ++k)
      AddArgument(body, {DType::kVariant, Shape()}, index++);
    return Finish(body, {}, 0, absl::StrCat(condition_.name, "_forward"));
  }

  Status AddGradientLoop(const FunctionRef& body) {
    Graph graph = graph_.EmptyTwin();
    GraphBuilder condition(&graph);
    std::vector<Endpoint> arguments;
    for (const DType dtype : loop_types_) {
      arguments.push_back(AddArgument(condition, {dtype, {}}, static_cast<int>(arguments.size())));
    }
    const Endpoint goes_on = condition.Op("Greater", {arguments[0], condition.Scalar<int32_t>(0)});
    WEFT_ASSIGN_OR_RETURN(
        const FunctionRef has_more,
        Finish(condition, {goes_on}, 0, absl::StrCat(condition_.name, "_gradient")));
    std::vector<Endpoint> inputs{{&node_, num_variables_}};
    for (int i = 0; i < num_variables_; ++i) {
      if (wanted_[i]) inputs.push_back(FirstGradient(i));
    }
    for (size_t k = 0; k < kept_.size(); ++k) {
      inputs.push_back({&node_, num_variables_ + 1 + static_cast<int>(k)});
    }
    for (int i = 0; i < num_variables_; ++i) {
      if (passed_[i]) inputs.push_back(node_.input(i));
    }
    AttrMap attrs{{"cond", has_more}, {"body", body}};
    attrs["parallel_iterations"] = FindAttrOr<int64_t>(node_.attrs(), "parallel_iterations", 10);
    Node* back = builder_.AddNode(node_.op(), {inputs}, std::move(attrs));
    int port = 1;
    for (int i = 0; back != nullptr && i < num_variables_; ++i) {
      if (wanted_[i]) {
        c_.set_input(i, {back, port++});
      } else if (IsHandle(i) && c_.gradient(i)) {
        c_.set_input(i, c_.gradient(i));
      }
    }
    return builder_.status();
  }

  // What the gradient of variable i is behind the last iteration.
  Endpoint FirstGradient(int i) {
    if (c_.gradient(i)) return c_.gradient(i);
    return ZerosOf(builder_, IsHandle(i) ? node_.input(i) : Endpoint{&node_, i}, types_[i]);
  }

  GradientContext& c_;
  GraphBuilder& builder_;
  Graph& graph_;
  Node& node_;
  const int num_variables_;
  FunctionRef body_;
  FunctionRef condition_;
  std::unique_ptr<BodyGradient> back_;
  // By loop variable.
  std::vector<bool> carried_;
  std::vector<bool> wanted_;  // carried, and handles of variables that the body reads
  std::vector<bool> passed_;  // read by the gradient, and the same in all iterations
  std::vector<DType> types_;  // of the gradient
  // Tensors of the body that are kept for each iteration.
  std::vector<Endpoint> kept_;
  std::vector<DType> kept_types_;
  std::vector<DType> loop_types_;  // of the second loop's variables
};

}  // namespace

Status LoopGradient(GradientContext& c) { return Loop(c).Run(); }

}  // namespace weft::gradients
