// SPDX-License-Identifier: Apache-2.0
// One step over several tasks, from its first frame to its last report.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/waits.h"
#include "weft/master/step_runner.h"
#include "weft/worker/step_host.h"
#include "weft/worker/worker.h"

namespace weft::master {

// Where a signature is registered.
struct StepParts {
  struct Remote {
    std::string task;  // "/job:ps/replica:0/task:0"
    uint32_t graph = 0;
    std::shared_ptr<const WaitSubject> wait;  // for the end of its part
  };
  std::optional<uint32_t> local;  // the graph's number at this task
  std::vector<Remote> remote;
};

// Starts every part and calls `done` once, when all have ended. The first failure aborts the others
// and is what `done` gets; one of another task says from where it is. `parts` must outlive the
// step.
void RunParts(worker::Worker* worker, worker::StepHost* host, const StepParts& parts,
              StepRunner::Step step, StepRunner::Done done);

}  // namespace weft::master
