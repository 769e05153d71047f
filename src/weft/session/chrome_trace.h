// SPDX-License-Identifier: Apache-2.0
// A traced step as the JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open.
#pragma once

#include <string>
#include <vector>

#include "weft/executor/step_trace.h"

namespace weft::session {

// A process row for each device, a thread row for each thread, a slice for each node with its op,
// inputs and outputs. One JSON text.
std::string ChromeTrace(const std::vector<executor::NodeTrace>& nodes);

}  // namespace weft::session
