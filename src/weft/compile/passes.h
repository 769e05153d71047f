// SPDX-License-Identifier: Apache-2.0
// The passes that a graph goes through before it becomes a plan, one a file.
#pragma once

#include "base/status.h"
#include "weft/compile/plan.h"

namespace weft::compile {

// Runs the passes that `options` switches on, in order.
Status RunPasses(const PlanOptions& options, Graph* graph);


}  // namespace weft::compile
