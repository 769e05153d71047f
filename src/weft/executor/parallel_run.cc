// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/parallel_run.h"

#include <algorithm>
#include <climits>
#include <functional>
#include <utility>

#include "absl/time/clock.h"

#include "base/compute_threads.h"
#include "weft/executor/kernel_call.h"

namespace weft::executor {

using compile::Instruction;
using compile::InstructionKind;

ParallelRun::ParallelRun(const compile::Plan* plan, std::shared_ptr<const Schedule> schedule,
                         ThreadPool* pool)
    : plan_(plan),
      schedule_(std::move(schedule)),
      pool_(pool),
      waits_(schedule_->units().size()),
      counters_(schedule_->counted().size()) {
  absl::MutexLock lock(&mutex_);
  ready_.reserve(schedule_->units().size());
}

Status ParallelRun::Run(const ParallelRequest& request) {
  const std::vector<Schedule::Unit>& units = schedule_->units();
  request_ = request;
  request_.results->resize(plan_->result_types().size());
  failed_at_.store(INT_MAX, std::memory_order_relaxed);
  for (size_t u = 0; u < units.size(); ++u) {
    waits_[u].store(units[u].num_waits, std::memory_order_relaxed);
  }
  for (size_t k = 0; k < counters_.size(); ++k) {
    counters_[k].store(schedule_->counted()[k].num_units, std::memory_order_relaxed);
  }
  RunCalls(units[0]);
  {
    absl::MutexLock lock(&mutex_);
    ready_.clear();
    for (size_t u = 1; u < units.size(); ++u) {
      if (units[u].num_waits == 0) ready_.push_back(static_cast<int>(u));
    }
    std::make_heap(ready_.begin(), ready_.end(), std::greater<>());
    units_left_ = static_cast<int>(units.size()) - 1;
    CallThreads(static_cast<int>(ready_.size()) - 1);
  }
  Work(/*is_caller=*/true);
  absl::MutexLock lock(&mutex_);
  return std::exchange(status_, absl::OkStatus());
}

void ParallelRun::Work(bool is_caller) {
  mutex_.Lock();
  while (true) {
    if (!ready_.empty()) {
      std::pop_heap(ready_.begin(), ready_.end(), std::greater<>());
      const int unit = ready_.back();
      ready_.pop_back();
      mutex_.Unlock();
      RunUnit(unit);
      mutex_.Lock();
    } else if (is_caller && units_left_ > 0) {
      WaitForUnits();
    } else {
      break;
    }
  }
  if (!is_caller) --threads_called_;
  mutex_.Unlock();
}

void ParallelRun::WaitForUnits() {
  const ComputePause waiting;
  caller_waits_ = true;
  while (ready_.empty() && units_left_ > 0) changed_.Wait(&mutex_);
  caller_waits_ = false;
}

void ParallelRun::RunUnit(int unit) {
  const std::vector<Schedule::Unit>& units = schedule_->units();
  Units next = {unit};
  Units heavy;
  int ended = 0;
  while (!next.empty()) {
    const int current = next.back();
    next.pop_back();
    RunCalls(units[current]);
    ++ended;
    TellDependents(units[current], &next, &heavy);
    // What is light and soon done comes first: this thread then goes on with a heavy unit whose
    // inputs lie in its cache, where another would have taken it.
    if (!heavy.empty() && TimeOf(next) > kHandOver) {
      Offer(heavy, /*takes_one=*/false);
      heavy.clear();
    }
  }
  if (!heavy.empty()) Offer(heavy, /*takes_one=*/true);
  absl::MutexLock lock(&mutex_);
  units_left_ -= ended;
  if (units_left_ == 0 && caller_waits_) changed_.Signal();
}

int64_t ParallelRun::TimeOf(const Units& units) const {
  int64_t nanoseconds = 0;
  for (const int unit : units) nanoseconds += schedule_->units()[unit].nanoseconds;
  return nanoseconds;
}

void ParallelRun::RunCalls(const Schedule::Unit& unit) {
  const Cancellation& cancellation = *request_.state->environment().cancellation;
  for (const Schedule::Call& call : unit.calls) {
    if (call.instruction > failed_at_.load(std::memory_order_relaxed)) [[unlikely]]
      return;
    if (cancellation.IsCancelled()) [[unlikely]] {
      Fail(-1, cancellation.status());
      return;
    }
    const int64_t start = request_.costs != nullptr ? absl::GetCurrentTimeNanos() : 0;
    const uint64_t loops = LoopsSplitByThisThread();
    Status status = RunCall(call.instruction);
    if (!status.ok()) [[unlikely]] {
      Fail(call.instruction, std::move(status));
      return;
    }
    if (request_.costs != nullptr) {
      request_.costs->Saw(call.instruction, absl::GetCurrentTimeNanos() - start,
                          LoopsSplitByThisThread() != loops);
    }
    Release(call);
  }
}

Status ParallelRun::RunCall(int index) {
  const Instruction& instruction = plan_->instructions()[index];
  StepState& state = *request_.state;
  if (instruction.kind == InstructionKind::kArgument) return absl::OkStatus();
  if (instruction.kind == InstructionKind::kResult) {
    return TakeResult(instruction, state, request_.results);
  }
  if (state.has_arena()) state.PlaceOutputs(index);
  const absl::Time start = request_.trace != nullptr ? absl::Now() : absl::InfinitePast();
  Status status = state.TakeSnapshots(instruction);
  if (status.ok()) status = CallKernel(*instruction.kernel, state.context(index));
  state.DropSnapshots(instruction);
  if (!status.ok()) return NodeError(status, *instruction.node);
  if (request_.trace != nullptr) {
    TraceInstruction(instruction, {start, absl::Now(), ThreadNumber()}, state, request_.trace);
  }
  return absl::OkStatus();
}

void ParallelRun::Release(const Schedule::Call& call) {
  for (const int slot : call.releases) request_.state->Release(slot);
  for (const int k : call.drops) {
    if (counters_[k].fetch_sub(1, std::memory_order_acq_rel) == 1) {
      request_.state->Release(schedule_->counted()[k].slot);
    }
  }
}

void ParallelRun::TellDependents(const Schedule::Unit& unit, Units* next, Units* heavy) {
  for (const int dependent : unit.dependents) {
    if (waits_[dependent].fetch_sub(1, std::memory_order_acq_rel) > 1) continue;
    (schedule_->units()[dependent].is_heavy ? heavy : next)->push_back(dependent);
  }
}

void ParallelRun::Offer(const Units& units, bool takes_one) {
  absl::MutexLock lock(&mutex_);
  for (const int unit : units) {
    ready_.push_back(unit);
    std::push_heap(ready_.begin(), ready_.end(), std::greater<>());
  }
  int for_others = static_cast<int>(ready_.size()) - (takes_one ? 1 : 0);
  if (caller_waits_ && for_others > 0) {
    changed_.Signal();
    --for_others;
  }
  CallThreads(for_others);
}

void ParallelRun::CallThreads(int most) {
  const int wanted = std::min(most, pool_->num_threads() - 1 - threads_called_);
  const int claimed = ClaimComputeThreads(wanted, pool_->num_threads());
  threads_called_ += claimed;
  for (int i = 0; i < claimed; ++i) {
    pool_->Schedule([self = Ref<ParallelRun>(this)] {
      const ClaimedThread claim;
      self->Work(/*is_caller=*/false);
    });
  }
}

void ParallelRun::Fail(int instruction, Status status) {
  absl::MutexLock lock(&mutex_);
  if (instruction >= failed_at_.load(std::memory_order_relaxed)) return;
  failed_at_.store(instruction, std::memory_order_relaxed);
  status_ = std::move(status);
}

}  // namespace weft::executor
