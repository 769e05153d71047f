// SPDX-License-Identifier: Apache-2.0
#include "weft/executor/dynamic_step.h"

#include <algorithm>

#include "absl/time/clock.h"

#include "base/compute_threads.h"
#include "weft/executor/kernel_call.h"

namespace weft::executor {

using compile::Instruction;
using compile::InstructionKind;
using compile::Plan;

namespace {

// Tells the table, if there is one, how long an instruction took.
class Stopwatch {
 public:
  Stopwatch(CostTable* costs, int instruction)
      : costs_(costs),
        instruction_(instruction),
        start_(costs != nullptr ? absl::GetCurrentTimeNanos() : 0),
        loops_(LoopsSplitByThisThread()) {}
  ~Stopwatch() {
    if (costs_ == nullptr) return;
    costs_->Saw(instruction_, absl::GetCurrentTimeNanos() - start_,
                LoopsSplitByThisThread() != loops_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  CostTable* const costs_;
  const int instruction_;
  const int64_t start_;
  const uint64_t loops_;
};

// The steps that this thread drives, the innermost first: what one of them sends may make it drive
// another one in between.
struct Driven {
  const DynamicStep* step;
  const Driven* outer;
};
thread_local const Driven* driven_here = nullptr;

class DrivenScope {
 public:
  explicit DrivenScope(const DynamicStep* step) : here_{step, driven_here} { driven_here = &here_; }
  ~DrivenScope() { driven_here = here_.outer; }
  DrivenScope(const DrivenScope&) = delete;
  DrivenScope& operator=(const DrivenScope&) = delete;

 private:
  const Driven here_;
};

}  // namespace

DynamicStep::DynamicStep(PlanRunner* runner, RunRequest request, RunDone done)
    : runner_(runner),
      plan_(runner->plan()),
      none_(runner->none_),
      request_(std::move(request)),
      functions_(runner->functions(), &request_.environment, request_.trace),
      done_(std::move(done)),
      // On a device with a memory of its own one thread launches the kernels: the device's streams
      // do them side by side.
      costs_(runner->options().num_threads > 1 && !request_.environment.single_threaded &&
                     runner->plan().device()->memory() == nullptr
                 ? &runner->costs()
                 : nullptr),
      is_measured_(costs_ != nullptr && costs_->BeginStep()) {
  if (runner->functions() != nullptr) request_.environment.functions = &functions_;
  auto top = std::make_unique<Iteration>(plan_, none_, runner->TakeState(request_.arguments));
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
      step->Push({i, top});
    }
  }
  step->Drive();
}

void DynamicStep::Drive() {
  const ComputeScope here;
  while (true) {
    Task task;
    {
      const DrivenScope here_too(this);
      while (status_.ok() && TakeNext(&task)) Execute(task);
    }
    if (request_.environment.cancellation->IsCancelled()) {
      Fail(request_.environment.cancellation->status());
    }
    if (status_.ok() && heavy_.size() > 1) HandOver();
    std::vector<Completion> completed;
    bool computes = false;
    bool calls = false;
    {
      absl::MutexLock lock(&mutex_);
      if (!completions_.empty()) {
        completed.swap(completions_);
      } else if (status_.ok() && !heavy_.empty()) {
        task = heavy_.back();
        heavy_.pop_back();
        ++outstanding_;
        computes = IsKernel(task);
        calls = !computes;
        if (computes) {
          ++computing_;
          driving_ = false;
        }
      } else if (outstanding_ > 0) {
        driving_ = false;
        return;
      } else {
        break;
      }
    }
    if (computes) {
      Status status = ComputeHeavy(task);
      if (!BecomeDriver(task, std::move(status), /*was_heavy=*/true)) return;
    }
    if (calls) RunMeasured(task);
    for (const Completion& completion : completed) TakeIn(completion);
  }
  End();
}

void DynamicStep::TakeIn(const Completion& completion) {
  const Task task = completion.task;
  const Instruction& instruction = plan_.instructions()[task.index];
  --outstanding_;
  if (completion.was_heavy) --computing_;
  task.at->state->DropSnapshots(instruction);
  if (!completion.status.ok()) {
    Fail(NodeError(completion.status, *instruction.node));
  } else if (status_.ok()) {
    if (!task.at->starts.empty()) Trace(task, completion.end, completion.thread);
    Finish(task);
  }
}

// The next to run on this thread: what is ready, and then, when no kernel runs that might still
// read a variable, what changes one, in plan order.
bool DynamicStep::TakeNext(Task* task) {
  for (std::vector<Task>* list : {&sends_, &ready_}) {
    if (list->empty()) continue;
    *task = list->back();
    list->pop_back();
    return true;
  }
  if (late_.empty() || !heavy_.empty() || computing_ > 0) return false;
  const auto first = std::min_element(late_.begin(), late_.end(), [](const Task& a, const Task& b) {
    return std::pair(a.at->number, a.index) < std::pair(b.at->number, b.index);
  });
  *task = *first;
  late_.erase(first);
  return true;
}

void DynamicStep::Push(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  if (instruction.changes_variable) {
    late_.push_back(task);
  } else if (instruction.node->traits().exchange == Exchange::kSends) {
    sends_.push_back(task);
  } else if (costs_ != nullptr && IsHeavy(task)) {
    heavy_.push_back(task);
  } else {
    ready_.push_back(task);
  }
}

bool DynamicStep::IsHeavy(Task task) const {
  const Instruction& instruction = plan_.instructions()[task.index];
  if (costs_->nanoseconds(task.index) < runner_->options().worth_handing_over) return false;
  // Effects come in the order in which one thread has them.
  if (task.at->progress[task.index].any_dead || instruction.node->schema().is_stateful) {
    return false;
  }
  return instruction.kind == InstructionKind::kKernel
             ? !instruction.is_async && instruction.cost != KernelCost::kBlocking
             : instruction.kind == InstructionKind::kCall ||
                   instruction.kind == InstructionKind::kBranch ||
                   instruction.kind == InstructionKind::kLoop;
}

void DynamicStep::HandOver() {
  const int num_threads = runner_->options().num_threads;
  std::sort(heavy_.begin(), heavy_.end(), [](const Task& a, const Task& b) {
    return std::pair(a.at->number, a.index) < std::pair(b.at->number, b.index);
  });
  // What shares itself out needs no second thread. One task is this thread's own.
  const auto stays = std::find_if(heavy_.begin(), heavy_.end(),
                                  [&](const Task& task) { return costs_->shares(task.index); });
  const auto own = static_cast<size_t>(stays == heavy_.end() ? 0 : stays - heavy_.begin());
  int leaving = 0;
  for (size_t i = 0; i < heavy_.size(); ++i) {
    if (i != own && !costs_->shares(heavy_[i].index)) ++leaving;
  }
  int claimed = ClaimComputeThreads(std::min(leaving, num_threads - 1), num_threads);
  std::vector<Task> staying;
  for (size_t i = 0; i < heavy_.size(); ++i) {
    const Task task = heavy_[i];
    if (i == own || claimed == 0 || costs_->shares(task.index)) {
      staying.push_back(task);
      continue;
    }
    --claimed;
    ++outstanding_;
    if (IsKernel(task)) ++computing_;
    runner_->pool().Schedule([this, task] {
      const ClaimedThread claim;
      if (IsKernel(task)) {
        Complete(task, ComputeHeavy(task), /*was_heavy=*/true);
      } else {
        RunChildren(task);
      }
    });
  }
  heavy_ = std::move(staying);
}

bool DynamicStep::IsKernel(Task task) const {
  return plan_.instructions()[task.index].kind == InstructionKind::kKernel;
}

// On any thread.
Status DynamicStep::ComputeHeavy(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  if (!task.at->starts.empty()) task.at->starts[task.index] = absl::Now();
  const Stopwatch watch(is_measured_ ? costs_ : nullptr, task.index);
  WEFT_RETURN_IF_ERROR(task.at->state->TakeSnapshots(instruction));
  return CallKernel(*instruction.kernel, task.at->state->context(task.index));
}

void DynamicStep::Execute(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  if (request_.environment.cancellation->IsCancelled()) {
    Fail(request_.environment.cancellation->status());
    return;
  }
  if (task.at->progress[task.index].any_dead && instruction.kind != InstructionKind::kMerge) {
    if (instruction.node->traits().dead_inputs == DeadInputs::kSkipped) {
      if (instruction.kind != InstructionKind::kNextIteration) MarkDead(task);
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
    case InstructionKind::kBranch:
    case InstructionKind::kLoop:
      ++outstanding_;
      RunMeasured(task);
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
  if (plan_.device()->memory() != nullptr) {
    // The device's memory is dear, and no kernel runs beside this one on another thread: whoever
    // reads last may write over what it reads, not only an only reader.
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      context.binding().input_is_last_use[i] = task.at->uses[instruction.inputs[i]] == 1;
    }
  }
  if (!status.ok()) {
    Fail(NodeError(status, *instruction.node));
    return;
  }
  if (instruction.is_async) {
    ++outstanding_;
    CallAsyncKernel(*instruction.kernel, context,
                    [this, task](Status s) { Complete(task, std::move(s)); });
    return;
  }
  if (instruction.cost == KernelCost::kBlocking) {
    ++outstanding_;
    runner_->pool().Schedule([this, task, &instruction, &context] {
      Complete(task, CallKernel(*instruction.kernel, context));
    });
    return;
  }
  {
    const Stopwatch watch(is_measured_ ? costs_ : nullptr, task.index);
    status = CallKernel(*instruction.kernel, context);
  }
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

// What an instruction that computes nothing gives: its input.
StatusOr<Value> DynamicStep::PassedOn(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  const Value& source = task.at->state->slot(instruction.inputs[0]);
  Value value{.is_shared = true};
  value.tensor = source.tensor;
  if (source.variable && instruction.node->output_type(0).is_ref) {
    value.variable = source.variable;
  } else if (source.variable) {
    WEFT_ASSIGN_OR_RETURN(value.tensor, source.variable->Read());
  }
  return value;
}

// The input becomes the output; where to is for Finish. The slot of a NextIteration is that of what
// came from the iteration before, which its Merge may not have read yet.
void DynamicStep::ExecutePass(Task task) {
  const Instruction& instruction = plan_.instructions()[task.index];
  if (instruction.kind != InstructionKind::kNextIteration) {
    StatusOr<Value> value = PassedOn(task);
    if (!value.ok()) {
      Fail(NodeError(value.status(), *instruction.node));
      return;
    }
    task.at->state->slot(instruction.first_output) = *std::move(value);
  }
  Finish(task);
}

// On the driver's thread, which keeps the step until this returns.
void DynamicStep::RunMeasured(Task task) {
  const Stopwatch watch(is_measured_ ? costs_ : nullptr, task.index);
  RunChildren(task);
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

void DynamicStep::Complete(Task task, Status status, bool was_heavy) {
  if (!BecomeDriver(task, std::move(status), was_heavy)) return;
  bool is_awaited = false;  // this thread has more to do elsewhere
  for (const Driven* driven = driven_here; driven != nullptr; driven = driven->outer) {
    is_awaited = is_awaited || (driven->step != this && driven->step->HasMoreToDo());
  }
  if (is_awaited && IsWorthAThread()) {
    runner_->pool().Schedule([this] { Drive(); });
  } else {
    Drive();
  }
}

bool DynamicStep::IsWorthAThread() {
  if (costs_ == nullptr) return false;
  if (is_worth_a_thread_) return *is_worth_a_thread_;
  int64_t total = 0;
  for (size_t i = 0; i < costs_->size(); ++i) total += costs_->nanoseconds(static_cast<int>(i));
  // Before the first measured step has ended nobody knows.
  is_worth_a_thread_ =
      costs_->steps() <= 2 || is_measured_ || total >= runner_->options().worth_handing_over;
  return *is_worth_a_thread_;
}

bool DynamicStep::BecomeDriver(Task task, Status status, bool was_heavy) {
  Completion completion{.task = task, .status = std::move(status), .was_heavy = was_heavy};
  if (!task.at->starts.empty()) {
    completion.end = absl::Now();
    completion.thread = ThreadNumber();
  }
  {
    absl::MutexLock lock(&mutex_);
    completions_.push_back(std::move(completion));
    if (driving_) return false;
    driving_ = true;
  }
  return true;
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
    if (is_dead && target.node->traits().dead_inputs != DeadInputs::kIgnored)
      progress.any_dead = true;
    starts = progress.pending == 0;
  }
  if (progress.started || !starts) return;
  progress.started = true;
  ++to->running;
  Push({dependent.instruction, to});
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
  runner_->GiveBack(std::move(free_));
  RunDone done = std::move(done_);
  const Status status = std::move(status_);
  delete this;
  done(status, std::move(results));
}

}  // namespace weft::executor
