// SPDX-License-Identifier: Apache-2.0
// A traced step as a line of the log, which the page of a job draws (web/step_trace.js).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/executor/step_trace.h"

namespace weft::inspect {

// "weft-step " and a JSON object: of the longest ops device, start, time, name, op and, by their
// places in the list, what they read. Times are microseconds, from the step's begin on.
std::string StepLine(const std::vector<executor::NodeTrace>& trace, int64_t step);

// The name of the send by that of its receive: compile/partition.cc gives both the edge's number.
std::string SendOf(const std::string& receive);

}  // namespace weft::inspect
