// SPDX-License-Identifier: Apache-2.0
// What a person sees when a job has failed: on one screen, who, why, the last lines, and what to
// type next.
#pragma once

#include <string>
#include <vector>

#include "platform/launch/job_plan.h"
#include "platform/launch/job_watch.h"

namespace weft::platform {

struct ScreenOptions {
  std::vector<std::string> command_line;  // ours, for the suggestion to run it again
  std::string log_folder;
};

// At most 45 lines of at most 200 columns.
std::string FailureScreen(const LocalJob& job, const JobOutcome& outcome,
                          const ScreenOptions& options);

// The last `most` of `lines`, where a long stack of Python counts as its last frames alone: under
// the stacks that TensorFlow prints after an error, nobody would see the error.
std::vector<std::string> LastLinesToShow(const std::vector<std::string>& lines, size_t most);

// `text` as one word for a shell.
std::string ShellQuote(const std::string& text);

}  // namespace weft::platform
