// SPDX-License-Identifier: Apache-2.0
// A task's part of a step graph, compiled for its devices.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "weft/compile/plan.h"
#include "weft/executor/plan_runner.h"
#include "weft/graph/node_def.h"
#include "weft/kernel/op_spec.h"

namespace tensorflow {
class ConfigProto;
}

namespace weft::cluster {

struct RegisterOptions {
  bool fold = true;
  bool fuse = true;
};
// What a session's configuration says of optimisations.
RegisterOptions OptionsFromConfig(const tensorflow::ConfigProto& config);

// One device's part.
struct DevicePart {
  Device* device = nullptr;
  std::unique_ptr<compile::Plan> plan;
  std::unique_ptr<executor::PlanRunner> runner;
};

// Devices of a session and the kernels that its graphs share on each.
struct SessionDevices {
  std::vector<Device*> devices;
  std::vector<std::unique_ptr<compile::KernelCache>> kernels;  // by device
};

// Immutable once made; shared by the steps that run it.
struct RegisteredGraph {
  std::string session;
  std::vector<DevicePart> parts;
  // Other tasks that send to it or receive from it.
  std::set<std::string> peers;
  bool exchanges = false;       // has sends or receives at all
  GraphDef definition;          // for RunOptions.output_partition_graphs
  std::shared_ptr<void> owner;  // keeps the session's devices and kernels
};

// Splits `part` by device and compiles each piece. Nodes must have devices of `devices`. Errors
// name the node.
StatusOr<std::shared_ptr<RegisteredGraph>> CompilePart(Graph part, const RegisterOptions& options,
                                                       const Catalogue& catalogue,
                                                       const SessionDevices& devices,
                                                       ThreadPool* pool);

}  // namespace weft::cluster
