// SPDX-License-Identifier: Apache-2.0
// Where the instructions of a running step read and write: the graph itself, or one iteration of
// one of its loops of Enter and Exit nodes.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "weft/compile/plan.h"
#include "weft/executor/step_state.h"

namespace weft::executor {

struct Frame;

struct Progress {
  int pending = 0;      // inputs and control inputs still to come; of a Merge: control inputs
  int live_input = -1;  // of a Merge: the first that came alive
  int dead_inputs = 0;  // of a Merge
  bool any_dead = false;
  bool started = false;
};

// How far instructions are when nothing has run, by instruction.
inline std::vector<Progress> NoProgress(const compile::Plan& plan) {
  std::vector<Progress> progress;
  for (const compile::Instruction& instruction : plan.instructions()) {
    progress.push_back({.pending = instruction.kind == compile::InstructionKind::kMerge
                                       ? instruction.num_controls
                                       : instruction.num_dependencies});
  }
  return progress;
}

// Used by the step's driver only.
struct Iteration {
  Iteration(const compile::Plan& plan, const std::vector<Progress>& none,
            std::unique_ptr<StepState> slots)
      : state(std::move(slots)) {
    Reset(plan, none);
  }
  // `none`: NoProgress of the plan.
  void Reset(const compile::Plan& plan, const std::vector<Progress>& none) {
    uses = plan.uses();
    progress = none;
  }

  Frame* frame = nullptr;
  int64_t number = 0;
  std::unique_ptr<StepState> state;
  std::vector<Progress> progress;               // by instruction
  std::vector<int> uses;                        // by slot: readers still to come
  std::vector<absl::Time> starts;               // by instruction; empty unless traced
  int running = 0;                              // instructions that are ready or have started
  std::map<int, std::unique_ptr<Frame>> loops;  // under way inside, by frame number
};

// One run of a loop, or the graph itself. Iteration k + 1 starts while k is still under way.
struct Frame {
  int number = 0;   // in Plan::frames()
  uint64_t id = 0;  // tells apart all runs of all loops of a step; 0 is the graph itself
  Iteration* parent = nullptr;
  int pending_enters = 0;
  int64_t last = 0;  // the newest iteration's number
  std::map<int64_t, std::unique_ptr<Iteration>> iterations;
  // Outputs of constant Enters, for each iteration: (instruction, value).
  std::vector<std::pair<int, Value>> constants;
  // Exits that were dead in the newest iteration: dead outside too when it stays the newest.
  std::vector<int> dead_exits;
  // What goes into the next iteration when one of those under way has ended.
  std::vector<std::pair<int, Value>> held_back;
};

}  // namespace weft::executor
