// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/known_shapes.h"

#include <utility>

#include "absl/container/inlined_vector.h"

#include "weft/graph/shape_inference.h"

namespace weft {

KnownShapes::Entry& KnownShapes::At(const Node& node) {
  const auto id = static_cast<size_t>(node.id());
  if (id >= entries_.size()) entries_.resize(std::max(id + 1, entries_.size() * 2));
  Entry& entry = entries_[id];
  // A node that was widened has outputs that nobody inferred yet.
  const bool has_grown =
      entry.state == State::kDone && entry.outputs.size() < static_cast<size_t>(node.num_outputs());
  if (has_grown) entry = Entry();
  return entry;
}

void KnownShapes::Set(const Node& node, std::vector<PartialShape> outputs) {
  Entry& entry = At(node);
  entry.outputs = std::move(outputs);
  entry.state = State::kDone;
}

PartialShape KnownShapes::Of(const Endpoint& tensor) {
  if (tensor.node == nullptr) return {};
  Infer(*tensor.node).IgnoreError();  // unknown is an answer too
  return At(*tensor.node).outputs[tensor.port];
}

Status KnownShapes::Infer(const Node& node) {
  if (At(node).state != State::kNew) return absl::OkStatus();
  InferSources(node);
  return InferOne(node);
}

// Without recursion: graphs are deep. A node that reads itself finds itself unknown.
void KnownShapes::InferSources(const Node& node) {
  std::vector<const Node*> stack;
  const auto push_sources = [&](const Node& reader) {
    At(reader).state = State::kStarted;
    const size_t before = stack.size();
    for (const Endpoint& input : reader.inputs()) {
      if (input.node != nullptr && At(*input.node).state == State::kNew) {
        stack.push_back(input.node);
      }
    }
    return stack.size() > before;
  };
  push_sources(node);
  while (!stack.empty()) {
    const Node& top = *stack.back();
    if (At(top).state == State::kNew && push_sources(top)) continue;
    stack.pop_back();
    if (At(top).state != State::kDone) InferOne(top).IgnoreError();
  }
}

Status KnownShapes::InferOne(const Node& node) {
  absl::InlinedVector<PartialShape, 4> shapes(node.num_inputs());
  absl::InlinedVector<PartialShape, 4> variables;
  absl::InlinedVector<Tensor, 4> values(node.num_inputs());
  absl::InlinedVector<const Tensor*, 4> constants(node.num_inputs(), nullptr);
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Endpoint& input = node.input(i);
    if (input.node == nullptr) continue;
    const Entry& source = At(*input.node);
    if (source.state != State::kDone) continue;
    const ArgType& type = input.node->output_type(input.port);
    if (!type.is_ref || references_ == References::kDeclared) {
      shapes[i] = source.outputs[input.port];
    }
    if (type.dtype == DType::kResource) {
      variables.resize(node.num_inputs());
      variables[i] = source.variable;
    }
    if (input.node->traits().source != ValueSource::kConstant) continue;
    StatusOr<Tensor> value = input.node->Attr<Tensor>("value");
    // One that disagrees with its own type is no constant: its kernel refuses it.
    if (!value.ok() || value->dtype() != type.dtype) continue;
    values[i] = *std::move(value);
    constants[i] = &values[i];
  }
  Entry& entry = At(node);
  entry.state = State::kDone;
  if (node.traits().source == ValueSource::kVariable) {
    entry.variable = FindAttrOr<PartialShape>(node.attrs(), "shape", PartialShape());
  } else if (node.traits().passes_on == PassesOn::kItself && !variables.empty()) {
    entry.variable = variables[0];
  }
  StatusOr<std::vector<PartialShape>> inferred = InferShapes(node, shapes, constants, variables);
  if (!inferred.ok()) {
    entry.outputs.resize(node.num_outputs());
    return inferred.status();
  }
  entry.outputs = *std::move(inferred);
  return absl::OkStatus();
}

}  // namespace weft
