// SPDX-License-Identifier: Apache-2.0
// What a step of a program costs, by running it for a while.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace weft::apps {

// Runs the program with a `weft server` of one task, to which its sessions of no target go, until
// a few of its steps were traced, and then ends it. What it costs is then in the file `path`.
// FailedPrecondition if it ended before that.
Status MeasureProgram(const std::vector<std::string>& program, const std::string& path);

}  // namespace weft::apps
