// SPDX-License-Identifier: Apache-2.0
// A node as the planner of distributions sees it.
#pragma once

#include "platform/placement/cluster.h"
#include "platform/resources/node_description.h"

namespace weft::platform {

// The label that names a cloud's kind of node.
inline constexpr char kInstanceTypeLabel[] = "node.kubernetes.io/instance-type";

// What it can allocate; network and price are those of the cloud's shape that its label names, if
// that one is known.
NodeShape ShapeOfNode(const NodeDescription& node);

}  // namespace weft::platform
