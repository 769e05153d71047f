// SPDX-License-Identifier: Apache-2.0
// One piece of memory for the large tensors of a straight-line plan, laid out by what a step was
// seen to need.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"

#include "weft/compile/memory_plan.h"
#include "weft/compile/plan.h"
#include "weft/kernel/kernel_context.h"

namespace weft::executor {

class Schedule;

// Watches one step: which slots get large buffers of their own, who else reads them, until when.
class StepObserver {
 public:
  explicit StepObserver(const compile::Plan& plan);
  // After each instruction, before its releases.
  void Saw(int index, const std::vector<Value>& slots);
  // Before a slot is released.
  void Releasing(const Value& value);

  struct Large {
    int slot = 0;
    DType dtype = DType::kInvalid;
    Shape shape;
    compile::Lifetime lifetime;
    std::vector<int> holders;  // slots with these bytes
  };
  // What belongs into an arena: not what somebody else held when the last slot let go of it.
  std::vector<Large> Take() &&;

 private:
  int Find(const Buffer* buffer) const;

  const compile::Plan& plan_;
  std::vector<int> released_at_;  // by slot
  std::vector<Large> large_;
  std::vector<bool> escapes_;           // by position in large_
  std::vector<int> held_by_;            // by position in large_: how many slots have these bytes
  std::vector<const Buffer*> buffers_;  // by position in large_
};

// Buffers smaller than this stay with their slots anyway.
inline constexpr size_t kLargeBytes = 256 << 10;

// Gives slots their places before the kernels that write them run. A place is given only while
// every tensor that shares its bytes is known to be unused: a tensor that left the step (into a
// variable, a queue, a message) keeps its bytes, and the slots concerned take theirs from the pool.
class StepArena {
 public:
  // Null if memory is short or there is nothing to place. With a schedule, slots share bytes only
  // where one is done with before the other begins, in every order that the schedule allows.
  static std::unique_ptr<StepArena> Make(const compile::Plan& plan,
                                         std::vector<StepObserver::Large> large,
                                         const Schedule* schedule);

  // Before the kernel of instruction `index`.
  void Place(int index, std::vector<Value>& slots);
  bool IsPlacedAt(int instruction) const { return !spots_of_[instruction].empty(); }
  // True if the slot holds its own place and nobody else does: it stays for the next step.
  bool Keeps(int slot, const Value& value) const;

 private:
  struct Block;
  struct Spot {
    int slot = 0;
    DType dtype = DType::kInvalid;
    Shape shape;
    size_t offset = 0;
    size_t bytes = 0;
    std::vector<int> sharers;        // spots with some of the same bytes
    const Buffer* buffer = nullptr;  // of the last tensor made for it
  };
  bool IsIdle(int spot, const std::vector<Value>& slots) const;

  std::shared_ptr<Block> block_;  // shared with tensors that outlive the arena
  std::vector<Spot> spots_;
  std::vector<std::vector<int>> spots_of_;  // by instruction
  std::vector<int> spot_of_;                // by slot, -1
};

}  // namespace weft::executor
