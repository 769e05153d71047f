// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/plan_runner.h"

#include <utility>

#include "absl/time/clock.h"

#include "weft/executor/dynamic_step.h"

namespace weft::executor {

using compile::Instruction;
using compile::InstructionKind;
using compile::Plan;

PlanRunner::PlanRunner(const Plan* plan, ThreadPool* pool) : plan_(plan), pool_(pool) {
  for (const Instruction& instruction : plan->instructions()) {
    for (const Plan* child : instruction.children) {
      children_.try_emplace(child, std::make_unique<PlanRunner>(child, pool));
    }
  }
}

PlanRunner::~PlanRunner() = default;

std::unique_ptr<StepState> PlanRunner::TakeState(const std::vector<Tensor>& arguments) {
  std::unique_ptr<StepState> state;
  {
    absl::MutexLock lock(&mutex_);
    const auto take = [&](size_t i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      state = std::move(idle_[i]);
      idle_.erase(idle_.begin() + static_cast<ptrdiff_t>(i));
    };
    for (size_t i = idle_.size(); i-- > 0;) {
      if (!idle_[i]->HasShapesOf(arguments)) continue;
      take(i);
      return state;
    }
    if (idle_.size() >= kShapesKept) take(0);  // the one that rested longest
  }
  if (state == nullptr) state = std::make_unique<StepState>(*plan_);
  state->SettleFor(arguments);
  return state;
}

void PlanRunner::GiveBack(std::unique_ptr<StepState> state) {
  absl::MutexLock lock(&mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(state));
}

Status CollectResults(const Plan& plan, StepState& state, std::vector<Tensor>* results) {
  results->resize(plan.result_types().size());
  for (const Instruction& instruction : plan.instructions()) {
    if (instruction.kind != InstructionKind::kResult) continue;
    const Value& value = state.slot(instruction.inputs[0]);
    Tensor& result = (*results)[instruction.index];
    if (value.is_dead) {
      return InvalidArgument("The tensor returned for ", instruction.node->input(0).node->name(),
                             ":", instruction.node->input(0).port, " was not valid.");
    }
    if (value.variable) {
      StatusOr<Tensor> read = value.variable->Read();
      if (!read.ok()) return NodeError(read.status(), *instruction.node->input(0).node);
      result = *std::move(read);
    } else {
      result = value.tensor;
    }
  }
  return absl::OkStatus();
}

namespace {

Status TakeResult(const Instruction& instruction, StepState& state, std::vector<Tensor>* results) {
  const Value& value = state.slot(instruction.inputs[0]);
  if (!value.variable) {
    (*results)[instruction.index] = value.tensor;
    return absl::OkStatus();
  }
  StatusOr<Tensor> read = value.variable->Read();
  if (!read.ok()) return NodeError(read.status(), *instruction.node->input(0).node);
  (*results)[instruction.index] = *std::move(read);
  return absl::OkStatus();
}

Status ComputeWithSnapshots(const StepState::Call& call, const Instruction& instruction,
                            StepState& state) {
  Status status = state.TakeSnapshots(instruction);
  if (status.ok()) status = call.kernel->Compute(*call.context);
  state.DropSnapshots(instruction);
  return status;
}

// kWatched: the step is traced, or its memory observed.
template <bool kWatched>
Status RunStraight(const Plan& plan, StepState& state, StepTrace* trace,
                   std::vector<Tensor>* results) {
  const Cancellation& cancellation = *state.environment().cancellation;
  const Instruction* const instructions = plan.instructions().data();
  const bool has_arena = state.has_arena();
  results->resize(plan.result_types().size());
  for (const StepState::Call& call : state.calls()) {
    if (call.kernel != nullptr) [[likely]] {
      if (cancellation.IsCancelled()) [[unlikely]]
        return cancellation.status();
      if (has_arena) state.PlaceOutputs(call.instruction);
      absl::Time start;
      if constexpr (kWatched) start = absl::Now();
      const Status status = call.reads_references
                                ? ComputeWithSnapshots(call, instructions[call.instruction], state)
                                : call.kernel->Compute(*call.context);
      if (!status.ok()) [[unlikely]]
        return NodeError(status, *instructions[call.instruction].node);
      if constexpr (kWatched) {
        const Instruction& instruction = instructions[call.instruction];
        if (trace != nullptr)
          TraceInstruction(instruction, {start, absl::Now(), ThreadNumber()}, state, trace);
        if (state.observer() != nullptr) state.Watch(call.instruction);
      }
    } else if (instructions[call.instruction].kind == InstructionKind::kResult) {
      WEFT_RETURN_IF_ERROR(TakeResult(instructions[call.instruction], state, results));
    }
    for (int i = 0; i < call.num_releases; ++i) {
      if constexpr (kWatched) {
        if (state.observer() != nullptr) state.observer()->Releasing(state.slot(call.releases[i]));
      }
      state.Release(call.releases[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace

Status PlanRunner::RunInline(RunRequest& request, std::vector<Tensor>* results) {
  if (!plan_->is_straight_line()) {
    return FailedPrecondition("The step waits or branches and cannot run inline");
  }
  std::unique_ptr<StepState> state = TakeState(request.arguments);
  state->environment() = request.environment;
  Status status = state->SetArguments(request.arguments);
  state->BeginStep();
  if (status.ok()) {
    const bool watched = request.trace != nullptr || state->observer() != nullptr;
    status = watched ? RunStraight<true>(*plan_, *state, request.trace, results)
                     : RunStraight<false>(*plan_, *state, nullptr, results);
  }
  state->EndStep(status);
  if (!status.ok()) state->Clear();
  GiveBack(std::move(state));
  return status;
}

void PlanRunner::Run(RunRequest request, RunDone done) {
  if (plan_->is_straight_line()) {
    std::vector<Tensor> results;
    const Status status = RunInline(request, &results);
    if (!status.ok()) request.environment.cancellation->Cancel(status);
    done(status, std::move(results));
    return;
  }
  DynamicStep::Start(this, std::move(request), std::move(done));
}

}  // namespace weft::executor
