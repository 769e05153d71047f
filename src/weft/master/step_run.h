// SPDX-License-Identifier: Apache-2.0
// One step over several tasks, from its first frame to its last report.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/waits.h"
#include "weft/cluster/task_directory.h"
#include "weft/master/step_runner.h"
#include "weft/worker/step_host.h"
#include "weft/worker/worker.h"

namespace weft::master {

// Where a signature is registered.
struct StepParts {
  struct Remote {
    std::string task;    // "/job:ps/replica:0/task:0"
    uint32_t graph = 0;  // its number, of a task of ours
    std::string handle;  // the same as the task said it
    cluster::TaskId id;
    std::shared_ptr<const WaitSubject> wait;  // for the end of its part
  };
  std::optional<uint32_t> local;  // the graph's number at this task
  std::vector<Remote> remote;
  // A task of TensorFlow's own is among them: the step goes TensorFlow's way at all of them, by
  // calls instead of frames, and tensors are asked for instead of pushed.
  bool by_calls = false;
  std::string session;
};

// Starts every part and calls `done` once, when all have ended. The first failure aborts the others
// and is what `done` gets; one of another task says from where it is. `parts` must outlive the
// step.
void RunParts(worker::Worker* worker, worker::StepHost* host, cluster::TaskDirectory* directory,
              const StepParts& parts, StepRunner::Step step, StepRunner::Done done);

}  // namespace weft::master
