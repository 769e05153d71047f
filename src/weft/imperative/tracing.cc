// SPDX-License-Identifier: Apache-2.0
#include "weft/imperative/tracing.h"

#include <utility>

#include "weft/gradients/gradients.h"
#include "weft/imperative/runtime.h"

namespace weft::imperative {

Tracing::Tracing(Runtime& runtime)
    : runtime_(runtime), made_(Graph(&runtime.catalogue_.ops())), builder_(&made_.graph) {
  made_.graph.versions().producer = kGraphVersion;
  runtime_.tracing_ = this;
}

Tracing::~Tracing() { runtime_.tracing_ = nullptr; }

Array Tracing::AddInput(DType dtype, const PartialShape& shape) {
  const Endpoint input =
      builder_.Op("Placeholder", {}, {{"dtype", dtype}, {"shape", shape}}, "input");
  made_.inputs.push_back(input);
  return Array(input);
}

StatusOr<Endpoint> Tracing::Inside(const Array& array) {
  if (array.is_traced()) {
    if (made_.graph.Find(array.endpoint().node->name()) == array.endpoint().node)
      return array.endpoint();
    return InvalidArgument("An array of another function, which has ended, is used in this one");
  }
  const auto known = inside_.find(array.id());
  if (known != inside_.end()) return known->second;
  const Tensor& value = array.tensor();
  const Endpoint input = builder_.Op(
      "Placeholder", {}, {{"dtype", value.dtype()}, {"shape", value.shape()}}, "captured");
  WEFT_RETURN_IF_ERROR(builder_.status());
  captured_.push_back(array);
  captured_inputs_.push_back(input);
  inside_.emplace(array.id(), input);
  return input;
}

StatusOr<std::vector<Array>> Tracing::Add(const OpKind& kind, absl::Span<const Array> inputs) {
  std::vector<Endpoint> endpoints;
  for (const Array& input : inputs) {
    WEFT_ASSIGN_OR_RETURN(const Endpoint inside, Inside(input));
    endpoints.push_back(inside);
  }
  const OpCall& call = kind.call;
  const bool has_effects = call.schema().is_stateful;
  std::vector<Node*> controls;
  // Effects come in the order of the calls.
  if (has_effects && made_.last_effect != nullptr) controls.push_back(made_.last_effect);
  NodeDef def{.name = made_.graph.UniqueName(call.op()), .op = call.op(), .attrs = call.attrs()};
  if (runtime_.devices_.size() > 1) def.device = call.assigned_device();
  WEFT_ASSIGN_OR_RETURN(Node* const node, made_.graph.AddNode(std::move(def), endpoints, controls));
  if (has_effects) made_.last_effect = node;
  std::vector<Array> outputs;
  for (int port = 0; port < node->num_outputs(); ++port) {
    outputs.emplace_back(Endpoint{node, port});
    const DType dtype = node->output_type(port).dtype;
    if (has_effects && dtype != DType::kResource && dtype != DType::kVariant)
      made_.stateful.push_back({node, port});
  }
  return outputs;
}

StatusOr<TracedGraph> Tracing::End(const std::vector<Array>& outputs,
                                   std::vector<Array>* captured) {
  WEFT_RETURN_IF_ERROR(builder_.status());
  for (const Array& output : outputs) {
    if (!output)
      return InvalidArgument("A function gives nothing as output ", made_.outputs.size());
    WEFT_ASSIGN_OR_RETURN(const Endpoint inside, Inside(output));
    made_.outputs.push_back(inside);
  }
  made_.inputs.insert(made_.inputs.end(), captured_inputs_.begin(), captured_inputs_.end());
  *captured = captured_;
  return std::move(made_);
}

}  // namespace weft::imperative
