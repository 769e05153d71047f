// SPDX-License-Identifier: Apache-2.0
#include "platform/resources/node_shape.h"

namespace weft::platform {

NodeShape ShapeOfNode(const NodeDescription& node) {
  NodeShape shape;
  const auto type = node.labels.find(kInstanceTypeLabel);
  if (type != node.labels.end()) {
    const StatusOr<NodeShape> known = FindCloudShape(type->second);
    if (known.ok()) shape = *known;
  }
  shape.name = node.name;
  shape.processors = static_cast<double>(AmountOf(node.allocatable, kCpu)) / 1000;
  shape.memory = AmountOf(node.allocatable, kMemory);
  shape.gpus = static_cast<int>(node.gpus.size());
  if (!node.gpus.empty()) shape.gpu_model = node.gpus.front().model;
  return shape;
}

}  // namespace weft::platform
