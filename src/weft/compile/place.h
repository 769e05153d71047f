// SPDX-License-Identifier: Apache-2.0
// Gives every node of a graph a device.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "weft/graph/device_name.h"
#include "weft/graph/graph.h"
#include "weft/kernel/kernel_registry.h"

namespace weft::compile {

struct PlaceOptions {
  const KernelRegistry* kernels = nullptr;
  std::vector<DeviceName> devices;  // in full, the preferred first
  DeviceName default_device;        // in full, one of `devices`: for nodes that do not say
  // Tasks that no node names, whose devices are not known: for the error alone.
  std::vector<std::string> other_tasks;
  // A device type or number that there is not may become another one of the same task.
  bool soft = false;
};

// Sets assigned_device of every node that has none. Nodes of one group share a device: those that
// name each other in `_class`, and readers of references and resource handles with what made them,
// whatever they ask for themselves; and what goes into a variable of a loop with the Merge that
// takes it. Nodes of a loop that say nothing go where its condition, or another of its nodes, is. A
// function is called where all of its body has kernels. InvalidArgument names the node, what it
// asked for and what there is.
Status PlaceGraph(const PlaceOptions& options, Graph* graph);

}  // namespace weft::compile
