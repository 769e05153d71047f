// SPDX-License-Identifier: Apache-2.0
// Loops of Enter, Merge, Switch, NextIteration and Exit nodes.
#include <algorithm>

#include "weft/executor/dynamic_step.h"

namespace weft::executor {

using compile::Instruction;
using compile::LoopFrame;

namespace {

// Every place of a loop that spans places computes the same: FNV-1a of what it is told.
uint64_t FrameId(uint64_t parent, int64_t iteration, absl::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](uint64_t byte) { hash = (hash ^ (byte & 0xff)) * 0x100000001b3; };
  for (int shift = 0; shift < 64; shift += 8) add(parent >> shift);
  for (int shift = 0; shift < 64; shift += 8) add(static_cast<uint64_t>(iteration) >> shift);
  for (const char c : name) add(static_cast<uint64_t>(c));
  return std::max<uint64_t>(1, hash);  // 0 is the graph itself
}

}  // namespace

void DynamicStep::Pass(int index, const Value& value, Iteration* to) {
  to->state->slot(plan_.instructions()[index].first_output) = value;
  TellDependents({index, to}, value.is_dead, to);
}

Iteration* DynamicStep::AddIteration(Frame* frame, int64_t number) {
  if (free_.empty()) free_ = runner_->TakeIterations();
  std::unique_ptr<Iteration> made;
  if (free_.empty()) {
    made = std::make_unique<Iteration>(plan_, none_, std::make_unique<StepState>(plan_));
  } else {
    made = std::move(free_.back());
    free_.pop_back();
    made->Reset(plan_, none_);
  }
  made->state->environment() = request_.environment;
  made->starts.resize(request_.trace != nullptr ? made->progress.size() : 0);
  made->frame = frame;
  made->number = number;
  for (const int kernel : plan_.frames()[frame->number].kernels) {
    made->state->context(kernel).set_frame(frame->id, number);
  }
  frame->last = number;
  frame->dead_exits.clear();
  Iteration* iteration = made.get();
  frame->iterations.emplace(number, std::move(made));
  for (const auto& [index, value] : frame->constants) Pass(index, value, iteration);
  return iteration;
}

void DynamicStep::FinishEnter(Task task, bool died) {
  const Instruction& instruction = plan_.instructions()[task.index];
  std::unique_ptr<Frame>& loop = task.at->loops[instruction.frame];
  const LoopFrame& info = plan_.frames()[instruction.frame];
  if (loop == nullptr) {
    loop = std::make_unique<Frame>();
    loop->number = instruction.frame;
    loop->id = FrameId(task.at->frame->id, task.at->number, info.name);
    loop->parent = task.at;
    loop->pending_enters = info.num_enters;
    AddIteration(loop.get(), 0);
  }
  Frame* frame = loop.get();
  Value value = task.at->state->TakeOut(instruction.first_output);
  value.is_dead = died;
  if (FindAttrOr<bool>(instruction.node->attrs(), "is_constant", false)) {
    frame->constants.push_back({task.index, value});
    for (auto& [number, iteration] : frame->iterations) Pass(task.index, value, iteration.get());
  } else {
    Pass(task.index, value, frame->iterations.at(0).get());
  }
  --frame->pending_enters;
  const auto first = frame->iterations.find(0);
  if (first != frame->iterations.end()) EndIfIdle(first->second.get());
}

void DynamicStep::FinishExit(Task task, bool died) {
  Frame* frame = task.at->frame;
  if (died) {
    if (task.at->number == frame->last) frame->dead_exits.push_back(task.index);
    return;
  }
  Value value = task.at->state->TakeOut(plan_.instructions()[task.index].first_output);
  Pass(task.index, value, frame->parent);
}

void DynamicStep::FinishNextIteration(Task task, bool died) {
  if (died) return;  // the loop goes no further on this path
  StatusOr<Value> passed = PassedOn(task);
  if (!passed.ok()) {
    Fail(NodeError(passed.status(), *plan_.instructions()[task.index].node));
    return;
  }
  Frame* frame = task.at->frame;
  Value value = *std::move(passed);
  const auto next = frame->iterations.find(task.at->number + 1);
  if (next != frame->iterations.end()) {
    Pass(task.index, value, next->second.get());
  } else if (static_cast<int>(frame->iterations.size()) >=
             plan_.frames()[frame->number].parallel_iterations) {
    frame->held_back.push_back({task.index, std::move(value)});
  } else {
    Pass(task.index, value, AddIteration(frame, task.at->number + 1));
  }
}

void DynamicStep::EndIfIdle(Iteration* at) {
  Frame* frame = at->frame;
  while (frame != &root_) {
    if (at->running > 0 || !at->loops.empty() || (at->number == 0 && frame->pending_enters > 0))
      return;
    // An earlier iteration may still send something here.
    if (frame->iterations.begin()->first != at->number) return;
    at->state->Clear();
    const int64_t next_number = at->number + 1;
    free_.push_back(std::move(frame->iterations.begin()->second));
    frame->iterations.erase(frame->iterations.begin());
    if (!frame->held_back.empty()) {
      std::vector<std::pair<int, Value>> held = std::move(frame->held_back);
      frame->held_back.clear();
      const int64_t number = frame->last + 1;
      Iteration* next = AddIteration(frame, number);
      for (const auto& [index, value] : held) Pass(index, value, next);
    }
    if (frame->iterations.empty()) {
      EndFrame(frame);
      return;
    }
    const auto next = frame->iterations.find(next_number);
    if (next == frame->iterations.end()) return;
    at = next->second.get();
  }
}

void DynamicStep::EndFrame(Frame* frame) {
  Iteration* parent = frame->parent;
  const Value dead{.is_dead = true};
  for (const int index : frame->dead_exits) Pass(index, dead, parent);
  parent->loops.erase(frame->number);
  EndIfIdle(parent);
}

}  // namespace weft::executor
