// SPDX-License-Identifier: Apache-2.0
// Checkpoints of a model_dir, and graphs that run with their values in this process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "weft/estimator/model_fn/estimator_spec.h"
#include "weft/session/session.h"
#include "weft/train/saver.h"

namespace weft::estimator {

// The newest checkpoint of the folder `path`, or the checkpoint that `path` is. NotFound says what
// is not there.
StatusOr<std::string> CheckpointAt(const std::string& path);
// Its global step; 0 if it has none.
StatusOr<int64_t> GlobalStepOf(const std::string& checkpoint);

// A task without a job.
train::Task AloneTask();

// A session of this process with the program's graph: variables as `checkpoint` has them, local
// ones and states as they begin.
StatusOr<std::unique_ptr<session::Session>> OpenCheckpoint(train::Program& program,
                                                           train::Saver& saver,
                                                           const train::Scaffold& scaffold,
                                                           const train::Task& task,
                                                           const std::string& checkpoint);

// Writes numbers as summaries of step `step` to an event file in `folder`.
Status WriteNumbers(const std::string& folder, int64_t step,
                    const std::map<std::string, double>& numbers);

}  // namespace weft::estimator
