// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/dynamic_step.h"

#include <algorithm>

#include "absl/time/clock.h"

#include "weft/executor/loop_run.h"

namespace weft::executor {

using compile::Instruction;
using compile::InstructionKind;
using compile::Plan;

DynamicStep::DynamicStep(PlanRunner* runner, RunRequest request, RunDone done)
    : runner_(runner), plan_(runner->plan()), request_(std::move(request)), done_(std::move(done)) {
  auto top = std::make_unique<Iteration>(plan_, runner->TakeState(request_.arguments));
  top_ = top.get();
  top_->frame = &root_;
  top_->state->environment() = request_.environment;
  if (request_.trace != nullptr) top_->starts.resize(top_->progress.size());
  root_.iterations.emplace(0, std::move(top));
}

void DynamicStep::Start(PlanRunner* runner, RunRequest request, RunDone done) {
  auto* step = new DynamicStep(runner, std::move(request), std::move(done));
  Iteration* top = step->top_;
  step->status_ = top->state->SetArguments(step->request_.arguments);
  if (step->status_.ok()) {
    for (int i = static_cast<int>(top->progress.size()) - 1; i >= 0; --i) {
      if (step->plan_.instructions()[i].num_dependencies > 0) continue;
      ++top->running;
      step->ready_.push_back({i, top});
    }
  }
  step->Drive();
}

void DynamicStep::Drive() {
  while (true) {
    while (status_.ok() && (!ready_.empty() || !late_.empty())) {
      std::vector<Task>& from = ready_.empty() ? late_ : ready_;
      const Task task = from.back();
      from.pop_back();
      Execute(task);
    }
    std::vector<Completion> completed;
    {
      absl::MutexLock lock(&mutex_);
      if (completions_.empty()) {
        if (outstanding_ > 0) {
          driving_ = false;
          return;
        }
        break;
      }
      completed.swap(completions_);
    }
    for (Completion& completion : completed) {
      const Task task = completion.task;
      --outstanding_;
      task.at->state->DropSnapshots(plan_.instructions()[task.index]);
      if (!completion.status.ok()) {
        Fail(NodeError(completion.status, *plan_.instructions()[task.index].node));
      } else if (status_.ok()) {
        if (!task.at->starts.empty()) Trace(task, completion.end, completion.thread);
        Finish(task);
      }
    }
  }
  End();
}

void DynamicStep::Execute(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  if (request_.environment.cancellation->IsCancelled()) {
    Fail(request_.environment.cancellation->status());
    return;
  }
  if (task.at->progress[task.index].any_dead && instruction.kind != InstructionKind::kMerge) {
    if (instruction.node->op() != "_Send") {
      MarkDead(task);
      Finish(task);
      return;
    }
  }
  if (!task.at->starts.empty()) task.at->starts[task.index] = absl::Now();
  switch (instruction.kind) {
    case InstructionKind::kKernel:
      ExecuteKernel(task);
      return;
    case InstructionKind::kSwitch:
      ExecuteSwitch(task);
      return;
    case InstructionKind::kMerge:
      ExecuteMerge(task);
      return;
    case InstructionKind::kCall:
      ++outstanding_;
      ExecuteCall(task);
      return;
    case InstructionKind::kBranch:
      ++outstanding_;
      ExecuteBranch(task);
      return;
    case InstructionKind::kLoop:
      ++outstanding_;
      ExecuteLoop(task);
      return;
    case InstructionKind::kEnter:
    case InstructionKind::kExit:
    case InstructionKind::kNextIteration:
    case InstructionKind::kLoopCondition:
      ExecutePass(task);
      return;
    case InstructionKind::kArgument:
    case InstructionKind::kResult:
      Finish(task);
      return;
  }
}

void DynamicStep::ExecuteKernel(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  Status status = task.at->state->TakeSnapshots(instruction);
  KernelContext& context = task.at->state->context(task.index);
  if (!status.ok()) {
    Fail(NodeError(status, *instruction.node));
    return;
  }
  if (instruction.is_async) {
    ++outstanding_;
    instruction.kernel->ComputeAsync(context,
                                     [this, task](Status s) { Complete(task, std::move(s)); });
    return;
  }
  if (instruction.cost == KernelCost::kBlocking) {
    ++outstanding_;
    runner_->pool().Schedule([this, task, &instruction, &context] {
      Complete(task, instruction.kernel->Compute(context));
    });
    return;
  }
  status = instruction.kernel->Compute(context);
  task.at->state->DropSnapshots(instruction);
  if (!status.ok()) {
    Fail(NodeError(status, *instruction.node));
    return;
  }
  if (!task.at->starts.empty()) Trace(task, absl::Now(), ThreadNumber());
  Finish(task);
}

void DynamicStep::ExecuteSwitch(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  const Value& data = task.at->state->slot(instruction.inputs[0]);
  Status status = task.at->state->TakeSnapshots(instruction);
  const Value& condition = task.at->state->slot(instruction.inputs[1]);
  StatusOr<bool> taken = false;
  if (status.ok()) {
    Tensor value = condition.tensor;
    if (condition.variable) {
      StatusOr<Tensor> read = condition.variable->Read();
      status = read.status();
      if (read.ok()) value = *read;
    }
    if (status.ok() && (value.dtype() != DType::kBool || value.num_elements() != 1)) {
      status = InvalidArgument("The second input must be a scalar bool, but it has shape ",
                               value.shape().ToString());
    }
    if (status.ok()) taken = value.scalar<bool>();
  }
  if (!status.ok()) {
    Fail(NodeError(status, *instruction.node));
    return;
  }
  const int live = *taken ? 1 : 0;
  Value& output = task.at->state->slot(instruction.first_output + live);
  output.is_shared = true;
  output.variable = instruction.node->output_type(0).is_ref ? data.variable : Ref<Variable>();
  output.tensor = data.tensor;
  if (data.variable && !instruction.node->output_type(0).is_ref) {
    StatusOr<Tensor> read = data.variable->Read();
    if (!read.ok()) {
      Fail(NodeError(read.status(), *instruction.node));
      return;
    }
    output.tensor = *read;
  }
  task.at->state->DropSnapshots(instruction);
  task.at->state->slot(instruction.first_output + 1 - live).is_dead = true;
  Finish(task);
}

void DynamicStep::ExecuteMerge(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  const int live = task.at->progress[task.index].live_input;
  if (live < 0) {
    MarkDead(task);
    Finish(task);
    return;
  }
  const Value& source = task.at->state->slot(instruction.inputs[live]);
  Value& output = task.at->state->slot(instruction.first_output);
  output.tensor = source.tensor;
  output.variable = source.variable;
  output.is_shared = true;
  if (source.variable && !instruction.node->output_type(0).is_ref) {
    StatusOr<Tensor> read = source.variable->Read();
    if (!read.ok()) {
      Fail(NodeError(read.status(), *instruction.node));
      return;
    }
    output.tensor = *read;
    output.variable.reset();
  }
  Value& which = task.at->state->slot(instruction.first_output + 1);
  which.tensor = Tensor::Scalar<int32_t>(live);
  which.is_shared = true;
  Finish(task);
}

// The input becomes the output; where to is for Finish.
void DynamicStep::ExecutePass(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  const Value& source = task.at->state->slot(instruction.inputs[0]);
  Value value{.is_shared = true};
  value.tensor = source.tensor;
  if (source.variable && instruction.node->output_type(0).is_ref) {
    value.variable = source.variable;
  } else if (source.variable) {
    StatusOr<Tensor> read = source.variable->Read();
    if (!read.ok()) {
      Fail(NodeError(read.status(), *instruction.node));
      return;
    }
    value.tensor = *std::move(read);
  }
  task.at->state->slot(instruction.first_output) = std::move(value);
  Finish(task);
}

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

void DynamicStep::ExecuteCall(Task task) {
  RunChild(task, plan_.instructions()[task.index].children[0], ArgumentsFrom(task, 0));
}

void DynamicStep::ExecuteBranch(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  const Tensor condition = ArgumentsFrom(task, 0)[0];
  size_t branch = 0;
  if (instruction.node->op() == "Case" || instruction.node->op() == "StatelessCase") {
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

void DynamicStep::MarkDead(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  for (int o = 0; o < instruction.num_outputs; ++o) {
    task.at->state->slot(instruction.first_output + o).is_dead = true;
  }
}

void DynamicStep::Trace(Task task, absl::Time end, uint64_t thread) {
  TraceInstruction(plan_.instructions()[task.index], {task.at->starts[task.index], end, thread},
                   *task.at->state, request_.trace);
}

void DynamicStep::Complete(Task task, Status status) {
  Completion completion{task, std::move(status)};
  if (!task.at->starts.empty()) {
    completion.end = absl::Now();
    completion.thread = ThreadNumber();
  }
  {
    absl::MutexLock lock(&mutex_);
    completions_.push_back(std::move(completion));
    if (driving_) return;
    driving_ = true;
  }
  Drive();
}

void DynamicStep::Finish(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  const Progress& progress = task.at->progress[task.index];
  const bool died =
      instruction.kind == InstructionKind::kMerge ? progress.live_input < 0 : progress.any_dead;
  switch (instruction.kind) {
    case InstructionKind::kEnter:
      FinishEnter(task, died);
      break;
    case InstructionKind::kExit:
      FinishExit(task, died);
      break;
    case InstructionKind::kNextIteration:
      FinishNextIteration(task, died);
      break;
    default:
      TellDependents(task, died, task.at);
  }
  if (instruction.kind == InstructionKind::kMerge) {  // the other inputs may still be on their way
    if (!died) DropUse(instruction.inputs[progress.live_input], task.at);
  } else if (instruction.kind != InstructionKind::kResult) {  // read at the end
    for (int slot : instruction.inputs) DropUse(slot, task.at);
  }
  if (--task.at->running == 0) EndIfIdle(task.at);
}

void DynamicStep::DropUse(int slot, Iteration* at) {
  if (--at->uses[slot] == 0) at->state->Release(slot);
}

void DynamicStep::TellDependents(Task task, bool died, Iteration* to) {
  const Instruction& instruction = plan_.instructions()[task.index];
  for (const Instruction::Dependent& dependent : instruction.dependents) {
    const bool is_dead =
        died || (dependent.port != kControlPort &&
                 to->state->slot(instruction.first_output + dependent.port).is_dead);
    Deliver(instruction, dependent, is_dead, to);
  }
}

void DynamicStep::Deliver(const Instruction& source, const Instruction::Dependent& dependent,
                          bool is_dead, Iteration* to) {
  Progress& progress = to->progress[dependent.instruction];
  const Instruction& target = plan_.instructions()[dependent.instruction];
  bool starts = false;
  if (target.kind == InstructionKind::kMerge) {
    if (dependent.input == kControlPort) {
      --progress.pending;
    } else if (!is_dead && progress.live_input < 0) {
      progress.live_input = dependent.input;
    } else {
      // The back edge of a loop that is dead from the start never comes.
      if (is_dead) {
        progress.dead_inputs +=
            source.kind == InstructionKind::kEnter ? static_cast<int>(target.inputs.size()) : 1;
      }
      DropUse(target.inputs[dependent.input], to);
    }
    const bool is_told =
        progress.live_input >= 0 || progress.dead_inputs >= static_cast<int>(target.inputs.size());
    starts = progress.pending == 0 && is_told;
  } else {
    --progress.pending;
    // A ControlTrigger only waits: it is alive whatever its inputs are.
    if (is_dead && target.node->op() != "ControlTrigger") progress.any_dead = true;
    starts = progress.pending == 0;
  }
  if (progress.started || !starts) return;
  progress.started = true;
  ++to->running;
  (target.changes_variable ? late_ : ready_).push_back({dependent.instruction, to});
}

void DynamicStep::Fail(Status status) {
  if (!status_.ok()) return;
  status_ = std::move(status);
  request_.environment.cancellation->Cancel(status_);
  if (request_.environment.rendezvous != nullptr) request_.environment.rendezvous->Abort(status_);
}

void DynamicStep::End() {
  std::vector<Tensor> results;
  if (status_.ok()) status_ = CollectResults(plan_, *top_->state, &results);
  top_->state->Clear();
  runner_->GiveBack(std::move(top_->state));
  RunDone done = std::move(done_);
  const Status status = std::move(status_);
  delete this;
  done(status, std::move(results));
}

}  // namespace weft::executor
