// SPDX-License-Identifier: Apache-2.0
// Well-known training steps by their published sizes, to plan without a program and to compare
// placers by.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "platform/placement/step_graph.h"

namespace weft::platform {

std::vector<std::string> ModelNames();
// `batch` 0: a usual one. InvalidArgument names those that there are.
StatusOr<StepGraph> MakeModel(const std::string& name, int64_t batch);

}  // namespace weft::platform
