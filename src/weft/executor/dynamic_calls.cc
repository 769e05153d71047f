// SPDX-License-Identifier: Apache-2.0
// Calls, branches and loops of functions: instructions that run other plans.
#include "weft/executor/dynamic_step.h"
#include "weft/executor/loop_run.h"

namespace weft::executor {

using compile::Instruction;
using compile::InstructionKind;
using compile::Plan;

std::vector<Tensor> DynamicStep::ArgumentsFrom(Task task, int first_input) {
  const Instruction& instruction = plan_.instructions()[task.index];
  std::vector<Tensor> arguments;
  for (size_t i = static_cast<size_t>(first_input); i < instruction.inputs.size(); ++i) {
    const Value& value = task.at->state->slot(instruction.inputs[i]);
    if (value.variable) {
      StatusOr<Tensor> read = value.variable->Read();
      arguments.push_back(read.ok() ? *read : Tensor());
    } else {
      arguments.push_back(value.tensor);
    }
  }
  return arguments;
}

void DynamicStep::SetResults(Task task, std::vector<Tensor> results) {
  const Instruction& instruction = plan_.instructions()[task.index];
  for (int o = 0; o < instruction.num_outputs && o < static_cast<int>(results.size()); ++o) {
    Value& output = task.at->state->slot(instruction.first_output + o);
    output.tensor = std::move(results[o]);
    output.is_shared = true;
  }
}

void DynamicStep::RunChild(Task task, const Plan* child, std::vector<Tensor> arguments) {
  RunRequest request{.environment = request_.environment,
                     .arguments = std::move(arguments),
                     .trace = request_.trace};
  runner_->child(child).Run(std::move(request),
                            [this, task](Status status, std::vector<Tensor> results) {
                              if (status.ok()) SetResults(task, std::move(results));
                              Complete(task, std::move(status));
                            });
}

// On any thread: starts a call, branch or loop, which completes by itself.
void DynamicStep::RunChildren(Task task) {
  // What goes to a thread of its own comes here past Execute.
  if (!task.at->starts.empty()) task.at->starts[task.index] = absl::Now();
  switch (plan_.instructions()[task.index].kind) {
    case InstructionKind::kBranch:
      return ExecuteBranch(task);
    case InstructionKind::kLoop:
      return ExecuteLoop(task);
    default:
      return ExecuteCall(task);
  }
}

void DynamicStep::ExecuteCall(Task task) {
  RunChild(task, plan_.instructions()[task.index].children[0], ArgumentsFrom(task, 0));
}

void DynamicStep::ExecuteBranch(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  const Tensor condition = ArgumentsFrom(task, 0)[0];
  size_t branch = 0;
  if (instruction.node->traits().selects_by_index) {
    const int32_t wanted = condition.scalar<int32_t>();
    const size_t last = instruction.children.size() - 1;
    branch = wanted < 0 || static_cast<size_t>(wanted) > last ? last : static_cast<size_t>(wanted);
  } else {
    StatusOr<bool> truth = Truth(condition);
    if (!truth.ok()) {
      Complete(task, truth.status());
      return;
    }
    branch = *truth ? 0 : 1;
  }
  RunChild(task, instruction.children[branch], ArgumentsFrom(task, 1));
}

void DynamicStep::ExecuteLoop(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  RunRequest request{.environment = request_.environment,
                     .arguments = ArgumentsFrom(task, 0),
                     .trace = request_.trace};
  LoopRun::Start(&runner_->child(instruction.children[0]), &runner_->child(instruction.children[1]),
                 std::move(request), [this, task](Status status, std::vector<Tensor> results) {
                   if (status.ok()) SetResults(task, std::move(results));
                   Complete(task, std::move(status));
                 });
}

}  // namespace weft::executor
