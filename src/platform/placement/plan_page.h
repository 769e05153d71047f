// SPDX-License-Identifier: Apache-2.0
// A plan as a page with pictures: the graph by device, the timeline of a step, throughput by
// counts.
#pragma once

#include <string>

#include "platform/placement/plan.h"

namespace weft::platform {

// One HTML text with SVG in it that needs nothing else.
std::string MakePlanPage(const DistributionPlan& plan, const Cluster& cluster);

}  // namespace weft::platform
