// SPDX-License-Identifier: Apache-2.0
#include "weft/gradients/gradients.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

#include "weft/gradients/function_gradients.h"

namespace weft::gradients {
namespace {

// The sum of what flowed back to one tensor.
TensorGradient Sum(GraphBuilder& builder, const std::vector<TensorGradient>& parts) {
  if (parts.size() == 1) return parts[0];
  bool all_slices = true;
  for (const TensorGradient& part : parts) all_slices = all_slices && part.slices.has_value();
  TensorGradient sum;
  if (all_slices) {
    std::vector<Endpoint> values;
    std::vector<Endpoint> indices;
    for (const TensorGradient& part : parts) {
      values.push_back(part.slices->values);
      indices.push_back(part.slices->indices);
    }
    const Endpoint axis = builder.Scalar<int32_t>(0);
    sum.slices = TensorGradient::Slices{.values = builder.Op("ConcatV2", {values, axis}),
                                        .indices = builder.Op("ConcatV2", {indices, axis}),
                                        .dense_shape = parts[0].slices->dense_shape};
    return sum;
  }
  std::vector<Endpoint> dense;
  for (const TensorGradient& part : parts) dense.push_back(Densify(builder, part));
  sum.dense = builder.Op("AddN", {dense});
  return sum;
}

class Backward {
 public:
  Backward(GraphBuilder& builder, std::string source, const std::vector<Endpoint>& xs)
      : builder_(builder),
        source_(std::move(source)),
        reaches_x_(builder.graph().max_id(), false),
        xs_(xs) {}

  Status Seed(const std::vector<Endpoint>& ys, const std::vector<Endpoint>& y_gradients) {
    for (size_t i = 0; i < ys.size(); ++i) {
      const Endpoint& y = ys[i];
      const DType dtype = y.node->output_type(y.port).dtype;
      if (!CarriesGradients(dtype) || dtype == DType::kResource) {
        return InvalidArgument("Gradients need a floating point tensor, but '", y.node->name(),
                               "' is ", DTypeName(dtype));
      }
      TensorGradient seed;
      seed.dense = i < y_gradients.size() && y_gradients[i].node != nullptr
                       ? y_gradients[i]
                       : builder_.Op("OnesLike", {y}, {}, "grad_ys");
      gradients_[y].push_back(seed);
    }
    return builder_.status();
  }

  // Marks the nodes between xs and ys and counts how many readers of each send a gradient back.
  void FindPath(const std::vector<Endpoint>& ys) {
    for (const Endpoint& x : xs_) MarkForward(x.node);
    std::vector<Node*> stack;
    std::vector<bool> seen(reaches_x_.size(), false);
    const auto visit = [&](Node* node) {
      if (reaches_x_[node->id()] && !seen[node->id()]) {
        seen[node->id()] = true;
        pending_.try_emplace(node, 0);
        stack.push_back(node);
      }
    };
    for (const Endpoint& y : ys) visit(y.node);
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      if (node->definition().has_no_gradient) continue;
      for (int i = 0; i < node->num_inputs(); ++i) {
        const Endpoint& input = node->input(i);
        if (!reaches_x_[input.node->id()] || !CarriesGradients(node->input_type(i).dtype)) continue;
        visit(input.node);
        ++pending_[input.node];
      }
    }
  }

  Status Run(const std::vector<Endpoint>& ys) {
    std::vector<Node*> ready;
    for (const Endpoint& y : ys) {
      const auto found = pending_.find(y.node);
      if (found == pending_.end() || found->second != 0) continue;
      found->second = -1;  // each node once, also when it gives several ys
      ready.push_back(y.node);
    }
    while (!ready.empty()) {
      Node* node = ready.back();
      ready.pop_back();
      // Differentiating may give the node further inputs: these lie on no path.
      const int num_inputs = node->num_inputs();
      WEFT_RETURN_IF_ERROR(Differentiate(node));
      if (node->definition().has_no_gradient) continue;
      for (int i = 0; i < num_inputs; ++i) {
        Node* source = node->input(i).node;
        if (!reaches_x_[source->id()] || !CarriesGradients(node->input_type(i).dtype)) continue;
        if (--pending_[source] == 0) ready.push_back(source);
      }
    }
    return absl::OkStatus();
  }

  TensorGradient Of(const Endpoint& x) {
    const auto found = gradients_.find(x);
    if (found == gradients_.end() || found->second.empty()) return {};
    TensorGradient sum = Sum(builder_, found->second);
    found->second = {sum};
    return sum;
  }

 private:
  void MarkForward(Node* from) {
    std::vector<Node*> stack;
    const auto mark = [&](Node* node) {
      if (reaches_x_[node->id()]) return;
      reaches_x_[node->id()] = true;
      stack.push_back(node);
    };
    mark(from);
    while (!stack.empty()) {
      Node* node = stack.back();
      stack.pop_back();
      for (const Consumer& consumer : node->consumers()) {
        if (consumer.input != kControlPort) mark(consumer.node);
      }
    }
  }

  Status Differentiate(Node* node) {
    if (node->definition().has_no_gradient || node->num_inputs() == 0) return absl::OkStatus();
    bool input_on_path = false;
    for (const Endpoint& input : node->inputs()) input_on_path |= reaches_x_[input.node->id()];
    if (!input_on_path) return absl::OkStatus();
    std::vector<Endpoint> outputs;
    bool any = false;
    for (int port = 0; port < node->num_outputs(); ++port) {
      const TensorGradient gradient = Of({node, port});
      any |= !gradient.empty();
      outputs.push_back(gradient.empty() ? Endpoint() : Densify(builder_, gradient));
    }
    if (!any) return absl::OkStatus();
    const bool has_functions = HasFunctions(*node);
    if (node->definition().gradient == nullptr && !has_functions) {
      return Unimplemented("No gradient is defined for op ", node->op(), " (node '", node->name(),
                           "')");
    }
    const DType first = node->num_outputs() > 0 ? node->output_type(0).dtype : DType::kInvalid;
    if (!has_functions && outputs[0].node == nullptr && CarriesGradients(first) &&
        first != DType::kResource) {
      outputs[0] = builder_.Op("ZerosLike", {Endpoint{node, 0}});
    }
    builder_.PushName(absl::StrCat(node->name(), "_grad"));
    GradientContext context(node, std::move(outputs), &builder_, source_);
    const Status status =
        has_functions ? FunctionGradients(context) : node->definition().gradient(context);
    builder_.PopName();
    WEFT_RETURN_IF_ERROR(Annotate(status, absl::StrCat("Gradient of node '", node->name(), "'")));
    WEFT_RETURN_IF_ERROR(builder_.status());
    int input = 0;
    for (const TensorGradient& gradient : context.input_gradients()) {
      const Endpoint& to = node->input(input++);
      if (!gradient.empty()) gradients_[to].push_back(gradient);
    }
    return absl::OkStatus();
  }

  GraphBuilder& builder_;
  const std::string source_;
  std::vector<bool> reaches_x_;  // by node id, of the nodes there were before
  const std::vector<Endpoint>& xs_;
  absl::flat_hash_map<Node*, int> pending_;
  absl::flat_hash_map<Endpoint, std::vector<TensorGradient>> gradients_;
};

// "gradients", "gradients_1", ...: no node stands in this scope yet.
std::string UnusedScope(const GraphBuilder& builder) {
  absl::flat_hash_set<std::string> used;
  for (const Node* node : builder.graph().nodes()) {
    absl::string_view name = node->name();
    if (!absl::ConsumePrefix(&name, builder.name_prefix())) continue;
    if (absl::StartsWith(name, "gradients")) used.emplace(name.substr(0, name.find('/')));
  }
  std::string scope = "gradients";
  for (int i = 1; used.contains(scope); ++i) scope = absl::StrCat("gradients_", i);
  return scope;
}

}  // namespace

bool CarriesGradients(DType dtype) {
  return IsFloating(dtype) || IsComplex(dtype) || dtype == DType::kResource ||
         dtype == DType::kVariant;
}

Endpoint Densify(GraphBuilder& builder, const TensorGradient& gradient) {
  if (!gradient.slices) return gradient.dense;
  const TensorGradient::Slices& slices = *gradient.slices;
  const auto vector = [&](std::vector<int32_t> values) {
    return builder.Constant(
        Tensor::FromSpan<int32_t>(Shape{static_cast<int64_t>(values.size())}, values));
  };
  const Endpoint shape = builder.Op("Cast", {slices.dense_shape}, {{"DstT", DType::kInt32}});
  const Endpoint rows = builder.Op("StridedSlice", {shape, vector({0}), vector({1}), vector({1})},
                                   {{"shrink_axis_mask", 1}});
  return builder.Op("UnsortedSegmentSum", {slices.values, slices.indices, rows});
}

StatusOr<std::vector<TensorGradient>> AddGradients(GraphBuilder& builder,
                                                   const std::vector<Endpoint>& ys,
                                                   const std::vector<Endpoint>& xs,
                                                   const std::vector<Endpoint>& y_gradients) {
  const std::string scope = UnusedScope(builder);
  // Part of a resource's name, which TensorFlow splits at slashes.
  const std::string source =
      absl::StrReplaceAll(absl::StrCat(builder.name_prefix(), scope), {{"/", "_"}});
  builder.PushName(scope);
  auto gradients = AddGradientsOf(builder, source, ys, xs, y_gradients);
  builder.PopName();
  return gradients;
}

StatusOr<std::vector<TensorGradient>> AddGradientsOf(GraphBuilder& builder,
                                                     const std::string& source,
                                                     const std::vector<Endpoint>& ys,
                                                     const std::vector<Endpoint>& xs,
                                                     const std::vector<Endpoint>& y_gradients) {
  WEFT_RETURN_IF_ERROR(builder.status());
  for (const Endpoint& x : xs) {
    if (x.node == nullptr) return InvalidArgument("Gradient with respect to an empty tensor");
  }
  for (const Endpoint& y : ys) {
    if (y.node == nullptr) return InvalidArgument("Gradient of an empty tensor");
  }
  Backward backward(builder, source, xs);
  backward.FindPath(ys);
  Status status = backward.Seed(ys, y_gradients);
  if (status.ok()) status = backward.Run(ys);
  std::vector<TensorGradient> out;
  for (const Endpoint& x : xs) out.push_back(backward.Of(x));
  WEFT_RETURN_IF_ERROR(status);
  WEFT_RETURN_IF_ERROR(builder.status());
  return out;
}

StatusOr<std::vector<Endpoint>> AddDenseGradients(GraphBuilder& builder,
                                                  const std::vector<Endpoint>& ys,
                                                  const std::vector<Endpoint>& xs) {
  WEFT_ASSIGN_OR_RETURN(std::vector<TensorGradient> gradients, AddGradients(builder, ys, xs));
  std::vector<Endpoint> dense;
  for (const TensorGradient& gradient : gradients) {
    dense.push_back(gradient.empty() ? Endpoint() : Densify(builder, gradient));
  }
  WEFT_RETURN_IF_ERROR(builder.status());
  return dense;
}

}  // namespace weft::gradients
