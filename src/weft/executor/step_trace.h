// SPDX-License-Identifier: Apache-2.0
// When each node of a traced step ran, where, and what came out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "weft/tensor/dtype.h"

namespace weft::compile {
struct Instruction;
}

namespace weft::executor {

class StepState;

struct OutputTrace {
  DType dtype = DType::kInvalid;
  std::vector<int64_t> dims;
  int64_t bytes = 0;
};

struct NodeTrace {
  std::string node;
  std::string op;
  std::string device;
  int64_t start_us = 0;  // since the epoch
  int64_t end_us = 0;
  uint64_t thread = 0;              // the system's number of the one that ended it
  std::vector<std::string> inputs;  // names of the nodes whose outputs it read
  std::vector<OutputTrace> outputs;
};

// Collects from all parts of a step. Thread-safe.
class StepTrace {
 public:
  void Add(NodeTrace trace) {
    absl::MutexLock lock(&mutex_);
    nodes_.push_back(std::move(trace));
  }
  std::vector<NodeTrace> Take() {
    absl::MutexLock lock(&mutex_);
    return std::move(nodes_);
  }

 private:
  absl::Mutex mutex_;
  std::vector<NodeTrace> nodes_ ABSL_GUARDED_BY(mutex_);
};

// The system's number of the calling thread.
uint64_t ThreadNumber();

// From when to when an instruction ran, and on which thread it ended.
struct InstructionTimes {
  absl::Time start;
  absl::Time end;
  uint64_t thread = 0;
};
// Adds an instruction whose outputs are still in their slots.
void TraceInstruction(const compile::Instruction& instruction, const InstructionTimes& times,
                      StepState& state, StepTrace* trace);

}  // namespace weft::executor
