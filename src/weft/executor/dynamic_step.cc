// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/dynamic_step.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "weft/compile/order.h"
#include "weft/executor/loop_run.h"

namespace weft::executor {

using compile::Instruction;
using compile::InstructionKind;
using compile::Plan;

DynamicStep::DynamicStep(PlanRunner* runner, RunRequest request, RunDone done)
    : runner_(runner),
      plan_(runner->plan()),
      request_(std::move(request)),
      done_(std::move(done)),
      state_(runner->TakeState()),
      progress_(plan_.instructions().size()),
      uses_(plan_.uses()) {
  state_->environment() = request_.environment;
  if (request_.trace != nullptr) starts_.resize(progress_.size());
  for (size_t i = 0; i < progress_.size(); ++i) {
    progress_[i].pending = plan_.instructions()[i].num_dependencies;
  }
}

void DynamicStep::Start(PlanRunner* runner, RunRequest request, RunDone done) {
  auto* step = new DynamicStep(runner, std::move(request), std::move(done));
  step->status_ = step->state_->SetArguments(step->request_.arguments);
  if (step->status_.ok()) {
    for (int i = static_cast<int>(step->progress_.size()) - 1; i >= 0; --i) {
      if (step->progress_[i].pending == 0) step->ready_.push_back(i);
    }
  }
  step->Drive();
}

void DynamicStep::Drive() {
  while (true) {
    while (status_.ok() && (!ready_.empty() || !late_.empty())) {
      std::vector<int>& from = ready_.empty() ? late_ : ready_;
      const int index = from.back();
      from.pop_back();
      Execute(index);
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
      --outstanding_;
      state_->DropSnapshots(plan_.instructions()[completion.instruction]);
      if (!completion.status.ok()) {
        Fail(NodeError(completion.status, *plan_.instructions()[completion.instruction].node));
      } else if (status_.ok()) {
        if (!starts_.empty()) Trace(completion.instruction, completion.end, completion.thread);
        Finish(completion.instruction);
      }
    }
  }
  End();
}

void DynamicStep::Execute(int index) {
  const Instruction& instruction = plan_.instructions()[index];
  if (request_.environment.cancellation->IsCancelled()) {
    Fail(request_.environment.cancellation->status());
    return;
  }
  if (progress_[index].any_dead && instruction.kind != InstructionKind::kMerge) {
    if (instruction.node->op() != "_Send") {
      MarkDead(index);
      Finish(index);
      return;
    }
  }
  if (!starts_.empty()) starts_[index] = absl::Now();
  switch (instruction.kind) {
    case InstructionKind::kKernel:
      ExecuteKernel(index);
      return;
    case InstructionKind::kSwitch:
      ExecuteSwitch(index);
      return;
    case InstructionKind::kMerge:
      ExecuteMerge(index);
      return;
    case InstructionKind::kCall:
      ++outstanding_;
      ExecuteCall(index);
      return;
    case InstructionKind::kBranch:
      ++outstanding_;
      ExecuteBranch(index);
      return;
    case InstructionKind::kLoop:
      ++outstanding_;
      ExecuteLoop(index);
      return;
    case InstructionKind::kArgument:
    case InstructionKind::kResult:
    case InstructionKind::kEnter:
    case InstructionKind::kExit:
    case InstructionKind::kNextIteration:
    case InstructionKind::kLoopCondition:
      Finish(index);
      return;
  }
}

void DynamicStep::ExecuteKernel(int index) {
  const Instruction& instruction = plan_.instructions()[index];
  Status status = state_->TakeSnapshots(instruction);
  KernelContext& context = state_->context(index);
  if (!status.ok()) {
    Fail(NodeError(status, *instruction.node));
    return;
  }
  if (instruction.is_async) {
    ++outstanding_;
    instruction.kernel->ComputeAsync(context,
                                     [this, index](Status s) { Complete(index, std::move(s)); });
    return;
  }
  if (instruction.cost == KernelCost::kBlocking) {
    ++outstanding_;
    runner_->pool().Schedule([this, index, &instruction, &context] {
      Complete(index, instruction.kernel->Compute(context));
    });
    return;
  }
  status = instruction.kernel->Compute(context);
  state_->DropSnapshots(instruction);
  if (!status.ok()) {
    Fail(NodeError(status, *instruction.node));
    return;
  }
  if (!starts_.empty()) Trace(index, absl::Now(), ThreadNumber());
  Finish(index);
}

void DynamicStep::ExecuteSwitch(int index) {
  const Instruction& instruction = plan_.instructions()[index];
  const Value& data = state_->slot(instruction.inputs[0]);
  Status status = state_->TakeSnapshots(instruction);
  const Value& condition = state_->slot(instruction.inputs[1]);
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
  Value& output = state_->slot(instruction.first_output + live);
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
  state_->DropSnapshots(instruction);
  state_->slot(instruction.first_output + 1 - live).is_dead = true;
  Finish(index);
}

void DynamicStep::ExecuteMerge(int index) {
  const Instruction& instruction = plan_.instructions()[index];
  const int live = progress_[index].live_input;
  if (live < 0) {
    MarkDead(index);
    Finish(index);
    return;
  }
  const Value& source = state_->slot(instruction.inputs[live]);
  Value& output = state_->slot(instruction.first_output);
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
  Value& which = state_->slot(instruction.first_output + 1);
  which.tensor = Tensor::Scalar<int32_t>(live);
  which.is_shared = true;
  Finish(index);
}

std::vector<Tensor> DynamicStep::ArgumentsFrom(int index, int first_input) {
  const Instruction& instruction = plan_.instructions()[index];
  std::vector<Tensor> arguments;
  for (size_t i = static_cast<size_t>(first_input); i < instruction.inputs.size(); ++i) {
    const Value& value = state_->slot(instruction.inputs[i]);
    if (value.variable) {
      StatusOr<Tensor> read = value.variable->Read();
      arguments.push_back(read.ok() ? *read : Tensor());
    } else {
      arguments.push_back(value.tensor);
    }
  }
  return arguments;
}

void DynamicStep::SetResults(int index, std::vector<Tensor> results) {
  const Instruction& instruction = plan_.instructions()[index];
  for (int o = 0; o < instruction.num_outputs && o < static_cast<int>(results.size()); ++o) {
    Value& output = state_->slot(instruction.first_output + o);
    output.tensor = std::move(results[o]);
    output.is_shared = true;
  }
}

void DynamicStep::RunChild(int index, const Plan* child, std::vector<Tensor> arguments) {
  RunRequest request{.environment = request_.environment,
                     .arguments = std::move(arguments),
                     .trace = request_.trace};
  runner_->child(child).Run(std::move(request),
                            [this, index](Status status, std::vector<Tensor> results) {
                              if (status.ok()) SetResults(index, std::move(results));
                              Complete(index, std::move(status));
                            });
}

void DynamicStep::ExecuteCall(int index) {
  RunChild(index, plan_.instructions()[index].children[0], ArgumentsFrom(index, 0));
}

void DynamicStep::ExecuteBranch(int index) {
  const Instruction& instruction = plan_.instructions()[index];
  const Tensor condition = ArgumentsFrom(index, 0)[0];
  size_t branch = 0;
  if (instruction.node->op() == "Case" || instruction.node->op() == "StatelessCase") {
    const int32_t wanted = condition.scalar<int32_t>();
    const size_t last = instruction.children.size() - 1;
    branch = wanted < 0 || static_cast<size_t>(wanted) > last ? last : static_cast<size_t>(wanted);
  } else {
    StatusOr<bool> truth = Truth(condition);
    if (!truth.ok()) {
      Complete(index, truth.status());
      return;
    }
    branch = *truth ? 0 : 1;
  }
  RunChild(index, instruction.children[branch], ArgumentsFrom(index, 1));
}

void DynamicStep::ExecuteLoop(int index) {
  const Instruction& instruction = plan_.instructions()[index];
  RunRequest request{.environment = request_.environment,
                     .arguments = ArgumentsFrom(index, 0),
                     .trace = request_.trace};
  LoopRun::Start(&runner_->child(instruction.children[0]), &runner_->child(instruction.children[1]),
                 std::move(request), [this, index](Status status, std::vector<Tensor> results) {
                   if (status.ok()) SetResults(index, std::move(results));
                   Complete(index, std::move(status));
                 });
}

void DynamicStep::MarkDead(int index) {
  const Instruction& instruction = plan_.instructions()[index];
  for (int o = 0; o < instruction.num_outputs; ++o) {
    state_->slot(instruction.first_output + o).is_dead = true;
  }
}

void DynamicStep::Trace(int index, absl::Time end, uint64_t thread) {
  TraceInstruction(plan_.instructions()[index], {starts_[index], end, thread}, *state_, request_.trace);
}

void DynamicStep::Complete(int index, Status status) {
  Completion completion{index, std::move(status)};
  if (!starts_.empty()) {
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

void DynamicStep::Finish(int index) {
  const Instruction& instruction = plan_.instructions()[index];
  const bool died = instruction.kind == InstructionKind::kMerge ? progress_[index].live_input < 0
                                                                : progress_[index].any_dead;
  for (const Instruction::Dependent& dependent : instruction.dependents) {
    const bool is_dead = dependent.port == kControlPort
                             ? died
                             : state_->slot(instruction.first_output + dependent.port).is_dead;
    Deliver(dependent, is_dead);
  }
  if (instruction.kind == InstructionKind::kResult) return;  // read at the end
  for (int slot : instruction.inputs) {
    if (--uses_[slot] == 0) state_->Release(slot);
  }
}

void DynamicStep::Deliver(const Instruction::Dependent& dependent, bool is_dead) {
  Progress& progress = progress_[dependent.instruction];
  const Instruction& target = plan_.instructions()[dependent.instruction];
  --progress.pending;
  if (target.kind == InstructionKind::kMerge) {
    if (dependent.input != kControlPort && !is_dead && progress.live_input < 0) {
      progress.live_input = dependent.input;
    }
  } else if (is_dead) {
    progress.any_dead = true;
  }
  if (progress.started || progress.pending > 0) return;
  progress.started = true;
  const bool late = target.kind == InstructionKind::kKernel && compile::ChangesVariable(*target.node);
  (late ? late_ : ready_).push_back(dependent.instruction);
}

void DynamicStep::Fail(Status status) {
  if (!status_.ok()) return;
  status_ = std::move(status);
  request_.environment.cancellation->Cancel(status_);
  if (request_.environment.rendezvous != nullptr) request_.environment.rendezvous->Abort(status_);
}

void DynamicStep::End() {
  std::vector<Tensor> results;
  if (status_.ok()) status_ = CollectResults(plan_, *state_, &results);
  state_->Clear();
  runner_->GiveBack(std::move(state_));
  RunDone done = std::move(done_);
  const Status status = std::move(status_);
  delete this;
  done(status, std::move(results));
}

}  // namespace weft::executor
