// SPDX-License-Identifier: Apache-2.0
#include "weft/graph/graph.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/synchronization/mutex.h"

#include "base/nearest_name.h"

namespace weft {

// Shared by graphs of which one may grow while functions of another are compiled. What is found
// stays where it is.
struct Graph::Library {
  mutable absl::Mutex mutex;
  std::map<std::string, std::unique_ptr<FunctionDef>, std::less<>> functions;
  std::map<std::string, std::unique_ptr<OpDefinition>, std::less<>> ops;
  std::map<std::string, std::string, std::less<>> gradients;
};

StatusOr<TensorName> ParseTensorName(absl::string_view text) {
  TensorName name;
  if (!text.empty() && text.front() == '^') {
    name.node = std::string(text.substr(1));
    name.port = kControlPort;
  } else {
    const size_t colon = text.rfind(':');
    name.node = std::string(text.substr(0, colon));
    if (colon != absl::string_view::npos) {
      const absl::string_view digits = text.substr(colon + 1);
      const bool leading_zero = digits.size() > 1 && digits.front() == '0';
      const bool all_digits =
          !digits.empty() && digits.find_first_not_of("0123456789") == absl::string_view::npos;
      if (!all_digits || leading_zero || !absl::SimpleAtoi(digits, &name.port)) {
        return InvalidArgument("Bad tensor name: '", text, "', expected 'node:port'");
      }
    }
  }
  if (name.node.empty())
    return InvalidArgument("Bad tensor name: '", text, "', the node is missing");
  return name;
}

Graph::Graph(const OpRegistry* ops) : ops_(ops), library_(std::make_shared<Library>()) {}

Status Graph::CheckInput(const Node& node, int index, const Endpoint& source) const {
  if (source.port < 0 || source.port >= source.node->num_outputs()) {
    return InvalidArgument(
        "Input ", index, " of node '", node.name(), "': Connecting to invalid output ", source.port,
        " of source node ", source.node->name(), " which has ", source.node->num_outputs(),
        " outputs. Try using tf.compat.v1.experimental.output_all_intermediates(True).");
  }
  const ArgType& wants = node.input_type(index);
  const ArgType& gets = source.node->output_type(source.port);
  if (wants.dtype != gets.dtype) {
    return InvalidArgument("Input ", index, " of node '", node.name(), "' was passed ",
                           DTypeName(gets.dtype), " from ", source.node->name(), ":", source.port,
                           " incompatible with expected ", DTypeName(wants.dtype), ".");
  }
  if (wants.is_ref && !gets.is_ref) {
    return InvalidArgument("Input ", index, " of node '", node.name(), "' was passed ",
                           DTypeName(gets.dtype), " from ", source.node->name(), ":", source.port,
                           " incompatible with expected ", DTypeName(wants.dtype), "_ref.");
  }
  return absl::OkStatus();
}

StatusOr<Node*> Graph::AddNode(NodeDef def, absl::Span<const Endpoint> inputs,
                               absl::Span<Node* const> controls) {
  if (def.name.empty()) return InvalidArgument("A node of op '", def.op, "' has no name");
  if (by_name_.contains(def.name))
    return InvalidArgument("Node name is used twice: '", def.name, "'");
  const auto where = [&](const Status& status) {
    return Annotate(status, absl::StrCat("Node '", def.name, "'"));
  };
  StatusOr<const OpDefinition*> definition = FindOp(def.op);
  if (!definition.ok()) return where(definition.status());
  auto node = std::make_unique<Node>();
  StatusOr<OpCall> call =
      OpCall::Make(*definition, def.name, std::move(def.attrs), std::move(def.device));
  if (!call.ok()) return where(call.status());
  node->call_ = *std::move(call);
  if (static_cast<int>(inputs.size()) != node->num_inputs()) {
    return InvalidArgument("Node '", node->name(), "' of op ", def.op, " needs ",
                           node->num_inputs(), " inputs, got ", inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].node == nullptr) continue;
    WEFT_RETURN_IF_ERROR(CheckInput(*node, static_cast<int>(i), inputs[i]));
  }
  Node* added = node.get();
  added->id_ = static_cast<int>(nodes_.size());
  added->inputs_.assign(inputs.begin(), inputs.end());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].node == nullptr) continue;
    inputs[i].node->consumers_.push_back({added, static_cast<int>(i), inputs[i].port});
  }
  nodes_.push_back(std::move(node));
  by_name_.emplace(added->name(), added);
  for (Node* control : controls) AddControlEdge(control, added);
  return added;
}

void Graph::DropConsumer(Node* producer, const Consumer& consumer) {
  auto& list = producer->consumers_;
  const auto found = std::find(list.begin(), list.end(), consumer);
  if (found != list.end()) list.erase(found);
}

Status Graph::SetInput(Node* node, int index, Endpoint source) {
  if (index < 0 || index >= node->num_inputs()) {
    return InvalidArgument("Node '", node->name(), "' has no input ", index);
  }
  if (source.node != nullptr) WEFT_RETURN_IF_ERROR(CheckInput(*node, index, source));
  const Endpoint old = node->inputs_[index];
  if (old.node != nullptr) DropConsumer(old.node, {node, index, old.port});
  node->inputs_[index] = source;
  if (source.node != nullptr) source.node->consumers_.push_back({node, index, source.port});
  return absl::OkStatus();
}

Status Graph::Widen(Node* node, absl::string_view op, AttrMap attrs,
                    absl::Span<const Endpoint> more_inputs) {
  WEFT_ASSIGN_OR_RETURN(const OpDefinition* definition, FindOp(op));
  Node wide = *node;
  WEFT_ASSIGN_OR_RETURN(wide.call_, OpCall::Make(definition, node->name(), std::move(attrs),
                                                 node->requested_device()));
  wide.call_.set_assigned_device(node->assigned_device());
  const auto goes_on = [](absl::Span<const ArgType> before, absl::Span<const ArgType> after) {
    return before.size() <= after.size() && std::equal(before.begin(), before.end(), after.begin());
  };
  const size_t num_inputs = node->inputs_.size();
  if (!goes_on(node->call().input_types(), wide.call().input_types()) ||
      !goes_on(node->output_types(), wide.output_types()) ||
      wide.call().input_types().size() != num_inputs + more_inputs.size()) {
    return InvalidArgument("Node '", node->name(), "' cannot become a node of op ", op,
                           ": its inputs and outputs are others");
  }
  for (size_t i = 0; i < more_inputs.size(); ++i) {
    WEFT_RETURN_IF_ERROR(CheckInput(wide, static_cast<int>(num_inputs + i), more_inputs[i]));
  }
  wide.inputs_.insert(wide.inputs_.end(), more_inputs.begin(), more_inputs.end());
  *node = std::move(wide);
  for (size_t i = num_inputs; i < node->inputs_.size(); ++i) {
    const Endpoint& source = node->inputs_[i];
    source.node->consumers_.push_back({node, static_cast<int>(i), source.port});
  }
  return absl::OkStatus();
}

void Graph::AddControlEdge(Node* from, Node* to) {
  auto& controls = to->control_inputs_;
  if (std::find(controls.begin(), controls.end(), from) != controls.end()) return;
  controls.push_back(from);
  from->consumers_.push_back({to, kControlPort, kControlPort});
}

void Graph::RemoveControlEdge(Node* from, Node* to) {
  auto& controls = to->control_inputs_;
  const auto found = std::find(controls.begin(), controls.end(), from);
  if (found == controls.end()) return;
  controls.erase(found);
  DropConsumer(from, {to, kControlPort, kControlPort});
}

void Graph::RedirectConsumers(Endpoint from, Endpoint to) {
  const std::vector<Consumer> consumers = from.node->consumers_;
  for (const Consumer& consumer : consumers) {
    if (consumer.port != from.port || consumer.input == kControlPort) continue;
    DropConsumer(from.node, consumer);
    consumer.node->inputs_[consumer.input] = to;
    to.node->consumers_.push_back({consumer.node, consumer.input, to.port});
  }
}

void Graph::RemoveNode(Node* node) {
  for (int i = 0; i < node->num_inputs(); ++i) {
    const Endpoint& source = node->inputs_[i];
    if (source.node != nullptr) DropConsumer(source.node, {node, i, source.port});
  }
  for (Node* control : node->control_inputs_) {
    DropConsumer(control, {node, kControlPort, kControlPort});
  }
  for (const Consumer& consumer : node->consumers_) {
    if (consumer.input == kControlPort) {
      auto& controls = consumer.node->control_inputs_;
      controls.erase(std::remove(controls.begin(), controls.end(), node), controls.end());
    } else {
      consumer.node->inputs_[consumer.input] = Endpoint();
    }
  }
  by_name_.erase(node->name());
  nodes_[node->id_].reset();
}

Node* Graph::Find(absl::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

StatusOr<Endpoint> Graph::FindEndpoint(absl::string_view tensor_name) const {
  WEFT_ASSIGN_OR_RETURN(TensorName name, ParseTensorName(tensor_name));
  Node* node = Find(name.node);
  if (node == nullptr) {
    std::vector<std::string> names;
    for (const Node* known : nodes()) names.push_back(known->name());
    const std::string nearest = NearestName(name.node, names);
    return NotFound("Tensor ", tensor_name, ": no node named '", name.node, "'",
                    names.empty()     ? " in a graph without nodes"
                    : nearest.empty() ? ""
                                      : absl::StrCat("; is '", nearest, "' meant?"));
  }
  if (name.port >= node->num_outputs()) {
    return InvalidArgument("Tensor ", tensor_name, ": node '", name.node, "' has ",
                           node->num_outputs(), " outputs",
                           node->num_outputs() == 0 ? ": it can be run, as a target" : "");
  }
  return Endpoint{node, name.port};
}

std::string Graph::UniqueName(absl::string_view prefix) {
  if (!by_name_.contains(prefix)) return std::string(prefix);
  int& suffix = next_suffix_[std::string(prefix)];
  while (true) {
    std::string candidate = absl::StrCat(prefix, "_", ++suffix);
    if (!by_name_.contains(candidate)) return candidate;
  }
}

std::vector<Node*> Graph::nodes() const {
  std::vector<Node*> all;
  all.reserve(by_name_.size());
  for (const auto& node : nodes_) {
    if (node != nullptr) all.push_back(node.get());
  }
  return all;
}

StatusOr<std::vector<Node*>> Graph::TopologicalOrder() const {
  std::vector<int> pending(nodes_.size(), 0);
  std::vector<Node*> order;
  order.reserve(by_name_.size());
  for (const auto& node : nodes_) {
    if (node == nullptr) continue;
    int count = static_cast<int>(node->control_inputs_.size());
    for (const Endpoint& input : node->inputs_) {
      if (input.node != nullptr && !input.node->LowersTo(InstructionKind::kNextIteration)) ++count;
    }
    pending[node->id_] = count;
    if (count == 0) order.push_back(node.get());
  }
  for (size_t next = 0; next < order.size(); ++next) {
    const Node* node = order[next];
    const bool back = node->LowersTo(InstructionKind::kNextIteration);
    for (const Consumer& consumer : node->consumers_) {
      if (back && consumer.input != kControlPort) continue;
      if (--pending[consumer.node->id_] == 0) order.push_back(consumer.node);
    }
  }
  if (order.size() == by_name_.size()) return order;
  for (const auto& node : nodes_) {
    if (node != nullptr && pending[node->id_] > 0) {
      return InvalidArgument("Graph has a cycle through node '", node->name(), "'");
    }
  }
  return Internal("Graph order is inconsistent");
}

Status Graph::AddFunction(FunctionDef function) {
  const std::string name = function.signature.name;
  if (name.empty()) return InvalidArgument("A function of the library has no name");
  if (ops_->Find(name) != nullptr) {
    return InvalidArgument("Function '", name, "' has the name of an op");
  }
  absl::MutexLock lock(&library_->mutex);
  const auto known = library_->functions.find(name);
  if (known != library_->functions.end()) {
    const auto same_node = [](const NodeDef& a, const NodeDef& b) {
      return a.name == b.name && a.op == b.op && a.inputs == b.inputs && a.device == b.device &&
             a.attrs == b.attrs;
    };
    const FunctionDef& old = *known->second;
    if (old.nodes.size() == function.nodes.size() && old.returns == function.returns &&
        std::equal(old.nodes.begin(), old.nodes.end(), function.nodes.begin(), same_node)) {
      return absl::OkStatus();
    }
    return InvalidArgument("Cannot add function '", name,
                           "' because a different function with the same name already exists.");
  }
  auto op = std::make_unique<OpDefinition>();
  op->schema = function.signature;
  op->schema.traits.lowers_to = InstructionKind::kCall;
  library_->ops.emplace(name, std::move(op));
  library_->functions.emplace(name, std::make_unique<FunctionDef>(std::move(function)));
  return absl::OkStatus();
}

const FunctionDef* Graph::FindFunction(absl::string_view name) const {
  absl::MutexLock lock(&library_->mutex);
  const auto found = library_->functions.find(std::string(name));
  return found == library_->functions.end() ? nullptr : found->second.get();
}

void Graph::RemoveFunction(const std::string& name) {
  absl::MutexLock lock(&library_->mutex);
  library_->ops.erase(name);
  library_->functions.erase(name);
}

std::vector<const FunctionDef*> Graph::functions() const {
  std::vector<const FunctionDef*> all;
  absl::MutexLock lock(&library_->mutex);
  for (const auto& [name, function] : library_->functions) all.push_back(function.get());
  return all;
}

void Graph::SetGradientFunction(const std::string& function, const std::string& gradient) {
  absl::MutexLock lock(&library_->mutex);
  library_->gradients[function] = gradient;
}

const std::string* Graph::FindGradientFunction(absl::string_view function) const {
  absl::MutexLock lock(&library_->mutex);
  const auto found = library_->gradients.find(std::string(function));
  return found == library_->gradients.end() ? nullptr : &found->second;
}

StatusOr<const OpDefinition*> Graph::FindOp(absl::string_view name) const {
  if (const OpDefinition* known = ops_->Find(name)) return known;
  absl::MutexLock lock(&library_->mutex);
  const auto function = library_->ops.find(std::string(name));
  if (function != library_->ops.end()) return function->second.get();
  return ops_->Get(name);
}

Graph Graph::EmptyTwin() const {
  Graph twin(ops_);
  twin.library_ = library_;
  twin.versions_ = versions_;
  return twin;
}

Graph Graph::Clone() const {
  Graph copy = EmptyTwin();
  copy.next_suffix_ = next_suffix_;
  std::vector<Node*> mapped(nodes_.size(), nullptr);
  for (const auto& node : nodes_) {
    if (node == nullptr) continue;
    auto twin = std::make_unique<Node>(*node);
    twin->id_ = static_cast<int>(copy.nodes_.size());
    mapped[node->id_] = twin.get();
    copy.by_name_.emplace(twin->name(), twin.get());
    copy.nodes_.push_back(std::move(twin));
  }
  for (const auto& twin : copy.nodes_) {
    for (Endpoint& input : twin->inputs_) {
      if (input.node != nullptr) input.node = mapped[input.node->id_];
    }
    for (Node*& control : twin->control_inputs_) control = mapped[control->id_];
    for (Consumer& consumer : twin->consumers_) consumer.node = mapped[consumer.node->id_];
  }
  return copy;
}

}  // namespace weft
