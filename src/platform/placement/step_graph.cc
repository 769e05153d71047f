// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/step_graph.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "platform/placement/op_work.h"

namespace weft::platform {
namespace {

using OpNumbers = absl::flat_hash_map<absl::string_view, int>;

// The order of the file as far as edges allow it: edges that would close a cycle are not waited
// for.
std::vector<int> TopologicalOrder(const CostFile& costs, const OpNumbers& numbers) {
  const int count = static_cast<int>(costs.ops.size());
  std::vector<std::vector<int>> readers(count);
  std::vector<int> waiting(count, 0);
  for (int i = 0; i < count; ++i) {
    for (const OpInput& input : costs.ops[i].inputs) {
      const auto found = numbers.find(input.op);
      if (found == numbers.end() || found->second == i) continue;
      readers[found->second].push_back(i);
      ++waiting[i];
    }
  }
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  std::vector<bool> is_queued(count, false);
  std::vector<int> order;
  const auto queue = [&](int op) {
    is_queued[op] = true;
    ready.push(op);
  };
  for (int i = 0; i < count; ++i) {
    if (waiting[i] == 0) queue(i);
  }
  int next_of_cycle = 0;
  while (static_cast<int>(order.size()) < count) {
    if (ready.empty()) {
      while (is_queued[next_of_cycle]) ++next_of_cycle;
      queue(next_of_cycle);
    }
    const int op = ready.top();
    ready.pop();
    order.push_back(op);
    for (const int reader : readers[op]) {
      if (--waiting[reader] == 0 && !is_queued[reader]) queue(reader);
    }
  }
  return order;
}

class GraphMaker {
 public:
  GraphMaker(const CostFile& costs, const OpNumbers& numbers, OpTime time)
      : costs_(costs),
        numbers_(numbers),
        time_(time),
        at_(costs.ops.size(), -1),
        first_tensor_(at_) {}

  StepGraph Make(const std::string& name) {
    graph_.name = name;
    graph_.fingerprint = costs_.graph;
    graph_.batch = costs_.batch;
    if (costs_.steps > 0)
      graph_.step_seconds = time_ == OpTime::kLeast ? costs_.least_seconds : costs_.step_seconds;
    for (const OpCost& cost : costs_.ops) {
      if (cost.outputs.empty()) continue;
      if (IsVariable(cost.op) || cost.op == "ReadVariableOp")
        shapes_of_variables_.insert(cost.outputs[0].dims);
    }
    FindSlots();
    for (const int op : TopologicalOrder(costs_, numbers_)) Add(op);
    return std::move(graph_);
  }

 private:
  // What an optimizer keeps for each element of a variable lies where the variable does.
  void FindSlots() {
    const auto variable_of = [&](const OpCost& update, size_t input) {
      const auto found = numbers_.find(update.inputs[input].op);
      return found != numbers_.end() && IsVariable(costs_.ops[found->second].op) ? found->second
                                                                                 : -1;
    };
    for (const OpCost& update : costs_.ops) {
      if (!IsUpdate(update.op) || update.inputs.empty()) continue;
      const int variable = variable_of(update, 0);
      for (size_t i = 1; i < update.inputs.size() && variable >= 0; ++i) {
        const int slot = variable_of(update, i);
        if (slot >= 0 && slot != variable &&
            costs_.ops[slot].state_bytes == costs_.ops[variable].state_bytes)
          slot_of_[slot] = variable;
      }
    }
  }

  // The variable's own, which its slots share, whichever of them comes first.
  int GroupOf(int number) {
    const auto slot = slot_of_.find(number);
    const int variable = slot == slot_of_.end() ? number : slot->second;
    const auto [found, is_new] = groups_.try_emplace(variable, graph_.num_groups);
    if (is_new) ++graph_.num_groups;
    return found->second;
  }

  // Null where it is not known.
  const TensorCost* Find(const OpInput& input) const {
    const auto found = numbers_.find(input.op);
    if (found == numbers_.end() || input.port < 0) return nullptr;
    const std::vector<TensorCost>& outputs = costs_.ops[found->second].outputs;
    return input.port < static_cast<int>(outputs.size()) ? &outputs[input.port] : nullptr;
  }

  void Add(int number) {
    const OpCost& cost = costs_.ops[number];
    std::vector<const TensorCost*> read;
    for (const OpInput& input : cost.inputs) {
      if (input.port >= 0) read.push_back(Find(input));
    }
    const OpWork work = WorkOf(cost, read);
    StepOp op{.name = cost.name,
              .op = cost.op,
              .flops = work.flops,
              .bytes = work.bytes,
              .seconds = time_ == OpTime::kLeast && cost.least_seconds >= 0 ? cost.least_seconds
                                                                            : cost.seconds,
              .state_bytes = static_cast<double>(cost.state_bytes)};
    const int variable = VariableOf(cost);
    if (IsVariable(cost.op)) {
      op.role = OpRole::kVariable;
      op.group = GroupOf(number);
    } else if (variable >= 0) {
      op.group = graph_.ops[variable].group;
      op.role = IsUpdate(cost.op) ? OpRole::kUpdate : OpRole::kLookup;
    }
    if (!IsFree(cost.op)) {
      for (const TensorCost& output : cost.outputs)
        op.output_bytes += static_cast<double>(output.bytes);
    }
    const int added = AddOp(std::move(op), {}, &graph_);
    at_[number] = added;
    first_tensor_[number] = static_cast<int>(graph_.tensors.size());
    const bool is_variable = IsVariable(cost.op);
    for (const TensorCost& output : cost.outputs) {
      const int tensor =
          AddTensor(added, is_variable ? 0 : static_cast<double>(output.bytes), &graph_);
      graph_.tensors[tensor].follows_batch =
          (variable < 0 || IsLookup(cost.op)) && FollowsBatch(output);
    }
    // What is only waited for, and what readers name beyond the outputs that were seen.
    AddTensor(added, 0, &graph_);
    for (const OpInput& input : cost.inputs) ConnectTo(input, added);
    LearnState(cost, variable);
  }

  // The variable that an update, a lookup or a read works on; -1 for all others.
  int VariableOf(const OpCost& cost) const {
    const bool works_on_one = IsUpdate(cost.op) || IsLookup(cost.op) ||
                              cost.op == "ReadVariableOp" || cost.op == "VarIsInitializedOp" ||
                              cost.op == "Identity";
    if (!works_on_one || cost.inputs.empty()) return -1;
    const auto found = numbers_.find(cost.inputs[0].op);
    if (found == numbers_.end() || at_[found->second] < 0) return -1;
    const int op = at_[found->second];
    return graph_.ops[op].role == OpRole::kVariable ? op : -1;
  }

  // As many rows as the batch, or so many times as many, and not a gradient of a variable, which
  // has its shape.
  bool FollowsBatch(const TensorCost& tensor) const {
    return costs_.batch > 1 && !tensor.dims.empty() && tensor.dims[0] > 0 &&
           tensor.dims[0] % costs_.batch == 0 && !shapes_of_variables_.contains(tensor.dims);
  }

  // A handle does not tell how large the variable is; who reads it does.
  void LearnState(const OpCost& cost, int variable) {
    if (variable < 0 || cost.op != "ReadVariableOp" || cost.outputs.empty()) return;
    double& bytes = graph_.ops[variable].state_bytes;
    bytes = std::max(bytes, static_cast<double>(cost.outputs[0].bytes));
  }

  void ConnectTo(const OpInput& input, int reader) {
    const auto found = numbers_.find(input.op);
    if (found == numbers_.end() || at_[found->second] < 0 || at_[found->second] == reader) return;
    const int outputs = static_cast<int>(costs_.ops[found->second].outputs.size());
    const int port = input.port < 0 || input.port >= outputs ? outputs : input.port;
    Connect(first_tensor_[found->second] + port, reader, &graph_);
  }

  const CostFile& costs_;
  const OpNumbers& numbers_;
  const OpTime time_;
  std::vector<int> at_;            // by number in the file: the op of the graph
  std::vector<int> first_tensor_;  // the same
  std::set<std::vector<int64_t>> shapes_of_variables_;
  std::map<int, int> slot_of_;  // by number in the file: of which variable
  std::map<int, int> groups_;   // by number in the file of a variable
  StepGraph graph_;
};

}  // namespace

double StepGraph::StateBytes() const {
  double bytes = 0;
  for (const StepOp& op : ops) bytes += op.state_bytes;
  return bytes;
}

int AddOp(StepOp op, const std::vector<int>& inputs, StepGraph* graph) {
  const int added = graph->num_ops();
  graph->ops.push_back(std::move(op));
  for (const int tensor : inputs) Connect(tensor, added, graph);
  return added;
}

int AddTensor(int producer, double bytes, StepGraph* graph) {
  const int added = static_cast<int>(graph->tensors.size());
  graph->tensors.push_back({.producer = producer, .bytes = bytes});
  graph->ops[producer].outputs.push_back(added);
  return added;
}

void Connect(int tensor, int consumer, StepGraph* graph) {
  std::vector<int>& consumers = graph->tensors[tensor].consumers;
  // Inputs of one op are connected one after another.
  if (!consumers.empty() && consumers.back() == consumer) return;
  consumers.push_back(consumer);
  graph->ops[consumer].inputs.push_back(tensor);
}

StatusOr<StepGraph> MakeStepGraph(const CostFile& costs, const std::string& name, OpTime time) {
  OpNumbers numbers;
  for (size_t i = 0; i < costs.ops.size(); ++i) {
    if (!numbers.try_emplace(costs.ops[i].name, static_cast<int>(i)).second)
      return InvalidArgument(name, ": two ops have the name '", costs.ops[i].name, "'");
  }
  return GraphMaker(costs, numbers, time).Make(name);
}

}  // namespace weft::platform
