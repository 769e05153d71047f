// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/plan_runner.h"

#include <memory>
#include <utility>

#include "absl/time/clock.h"

#include "base/compute_threads.h"
#include "base/exceptions.h"
#include "weft/executor/dynamic_step.h"
#include "weft/executor/function_calls.h"
#include "weft/executor/kernel_call.h"
#include "weft/executor/parallel_run.h"
#include "weft/kernel/device_answer.h"

namespace weft::executor {

using compile::Instruction;
using compile::InstructionKind;
using compile::Plan;

PlanRunner::PlanRunner(const Plan* plan, ThreadPool* pool, ScheduleOptions options)
    : plan_(plan),
      pool_(pool),
      options_(options),
      choice_(plan, options),
      none_(plan->is_straight_line() ? std::vector<Progress>() : NoProgress(*plan)) {
  if (plan->calls_functions()) {
    functions_ = std::make_unique<FunctionTable>(plan, pool, options);
  }
  for (const Instruction& instruction : plan->instructions()) {
    for (const Plan* child : instruction.children) {
      children_.try_emplace(child, std::make_unique<PlanRunner>(child, pool, options));
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

std::vector<std::unique_ptr<Iteration>> PlanRunner::TakeIterations() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(iterations_, {});
}

void PlanRunner::GiveBack(std::vector<std::unique_ptr<Iteration>> iterations) {
  absl::MutexLock lock(&mutex_);
  if (iterations_.empty()) iterations_ = std::move(iterations);
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

Status ComputeWithSnapshots(const StepState::Call& call, const Instruction& instruction,
                            StepState& state) {
  Status status = state.TakeSnapshots(instruction);
  if (status.ok()) status = call.kernel->Compute(*call.context);
  state.DropSnapshots(instruction);
  return status;
}

// What is told about each instruction of a step that is watched.
struct Watch {
  StepTrace* trace = nullptr;
  CostTable* costs = nullptr;
  StepState* state = nullptr;
  absl::Time start;
  uint64_t loops = 0;

  void Begin() {
    start = absl::Now();
    loops = LoopsSplitByThisThread();
  }
  void Saw(const Instruction& instruction, int index) const {
    const absl::Time end = absl::Now();
    if (costs != nullptr) {
      costs->Saw(index, absl::ToInt64Nanoseconds(end - start), LoopsSplitByThisThread() != loops);
    }
    if (trace != nullptr)
      TraceInstruction(instruction, {start, end, ThreadNumber()}, *state, trace);
    if (state->observer() != nullptr) state->Watch(index);
  }
};

// `watch`: null, or the step is traced or measured, or its memory observed. What a kernel throws is
// the status of the call that `at` shows.
template <bool kWatched>
Status RunCalls(const Plan& plan, StepState& state, Watch* watch, std::vector<Tensor>* results,
                const StepState::Call** at) {
  const Cancellation& cancellation = *state.environment().cancellation;
  const Instruction* const instructions = plan.instructions().data();
  const bool has_arena = state.has_arena();
  for (const StepState::Call& call : state.calls()) {
    if (call.kernel != nullptr) [[likely]] {
      *at = &call;
      if (cancellation.IsCancelled()) [[unlikely]]
        return cancellation.status();
      if (has_arena) state.PlaceOutputs(call.instruction);
      if constexpr (kWatched) watch->Begin();
      const Status status = call.reads_references
                                ? ComputeWithSnapshots(call, instructions[call.instruction], state)
                                : call.kernel->Compute(*call.context);
      if (!status.ok()) [[unlikely]]
        return NodeError(status, *instructions[call.instruction].node);
      if constexpr (kWatched) watch->Saw(instructions[call.instruction], call.instruction);
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

Status RunStraight(const Plan& plan, StepState& state, Watch* watch, std::vector<Tensor>* results) {
  results->resize(plan.result_types().size());
  const StepState::Call* at = nullptr;
  try {
    return watch != nullptr ? RunCalls<true>(plan, state, watch, results, &at)
                            : RunCalls<false>(plan, state, nullptr, results, &at);
  } catch (...) {
    const Status status = StatusOfException();
    if (at == nullptr) return status;
    return NodeError(status, *plan.instructions()[at->instruction].node);
  }
}

// `done`, called on `pool` when the device has done what the step gave it; a failure there is the
// step's. One that failed before ends without the device, which may stand still, and so does one
// that is cancelled meanwhile.
RunDone AfterSync(const StepEnvironment& environment, ThreadPool* pool, RunDone done) {
  return [environment, pool, done = std::move(done)](Status status,
                                                     std::vector<Tensor> results) mutable {
    if (!status.ok()) {
      done(std::move(status), {});
      return;
    }
    const auto answer = std::make_shared<DeviceAnswer>(
        pool, [results = std::move(results), done = std::move(done)](Status synced) mutable {
          if (!synced.ok()) results.clear();
          done(std::move(synced), std::move(results));
        });
    if (!answer->Begin(environment, "the end of its work")) {
      return answer->Tell(environment.cancellation->status());
    }
    environment.device->memory()->Sync([answer](Status s) { answer->Tell(std::move(s)); });
  };
}

}  // namespace

Status PlanRunner::RunInline(RunRequest& request, std::vector<Tensor>* results) {
  if (!plan_->is_straight_line()) {
    return FailedPrecondition("The step waits or branches and cannot run inline");
  }
  const ComputeScope computing;
  StepFunctions functions(functions_.get(), &request.environment, request.trace);
  const ParallelChoice::Mode mode = choice_.Begin();
  std::unique_ptr<StepState> state = TakeState(request.arguments);
  if (state->schedule() != mode.schedule) state->Adopt(mode.schedule);
  state->environment() = request.environment;
  if (functions_ != nullptr) state->environment().functions = &functions;
  Status status = state->SetArguments(request.arguments);
  state->BeginStep();
  const bool is_timed = mode.is_timed || mode.is_measured;
  const int64_t start = is_timed ? absl::GetCurrentTimeNanos() : 0;
  if (status.ok()) status = RunIn(mode, *state, request.trace, results);
  if (is_timed && status.ok()) choice_.End(mode, absl::GetCurrentTimeNanos() - start);
  state->EndStep(status);
  if (!status.ok()) state->Clear();
  GiveBack(std::move(state));
  return status;
}

Status PlanRunner::RunIn(const ParallelChoice::Mode& mode, StepState& state, StepTrace* trace,
                         std::vector<Tensor>* results) {
  CostTable* const costs = mode.is_measured ? &choice_.costs() : nullptr;
  if (mode.schedule != nullptr && state.observer() == nullptr) {
    return state.parallel_run(pool_).Run(
        {.state = &state, .trace = trace, .costs = costs, .results = results});
  }
  Watch watch{.trace = trace, .costs = costs, .state = &state};
  const bool is_watched = trace != nullptr || costs != nullptr || state.observer() != nullptr;
  return RunStraight(*plan_, state, is_watched ? &watch : nullptr, results);
}

void PlanRunner::Run(RunRequest request, RunDone done) {
  if (plan_->is_straight_line()) {
    std::vector<Tensor> results;
    const Status status = RunInline(request, &results);
    if (!status.ok()) request.environment.cancellation->Cancel(status);
    done(status, std::move(results));
    return;
  }
  if (plan_->ends_with_sync()) done = AfterSync(request.environment, pool_, std::move(done));
  DynamicStep::Start(this, std::move(request), std::move(done));
}

}  // namespace weft::executor
