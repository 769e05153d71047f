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
#include "weft/kernel/resource.h"

namespace weft::step {

// What a session asks of all its steps.
struct PartOptions {
  bool fold = true;
  bool fuse = true;
  bool deterministic = false;
  std::string container = kDefaultContainer;
};

// The devices of a session at one task, and the kernels that its steps share on each.
struct SessionDevices {
  SessionDevices() = default;
  explicit SessionDevices(std::vector<Device*> all);

  std::vector<Device*> devices;
  std::vector<std::unique_ptr<compile::KernelCache>> kernels;  // by device
  std::unique_ptr<ResourceManager> resources;                  // what dies with the session
};

// One device's part.
struct DevicePart {
  Device* device = nullptr;
  std::unique_ptr<compile::Plan> plan;
  std::unique_ptr<executor::PlanRunner> runner;
};

// Immutable once made; shared by the steps that run it.
struct TaskPart {
  PartOptions options;
  std::vector<DevicePart> parts;
  std::set<std::string> peers;  // tasks that send to it or receive from it
  bool exchanges = false;       // has sends or receives at all
  bool changes_variables = false;
  GraphDef definition;  // for RunOptions.output_partition_graphs
  SessionScope session;
};

// Splits `part` by device and compiles each piece. Its nodes must have devices of `devices`, which
// must outlive the result, as must the pool. Errors name the node.
StatusOr<std::unique_ptr<TaskPart>> CompileTaskPart(Graph part, const PartOptions& options,
                                                    const Catalogue& catalogue,
                                                    const SessionDevices& devices,
                                                    ThreadPool* pool);

}  // namespace weft::step
