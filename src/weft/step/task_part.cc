// SPDX-License-Identifier: Apache-2.0
#include "weft/step/task_part.h"

#include <utility>

#include "absl/algorithm/container.h"

#include "weft/compile/order.h"
#include "weft/compile/partition.h"
#include "weft/graph/device_name.h"
#include "weft/graph/import.h"

namespace weft::step {
namespace {

// Edges between devices of one task are numbered apart from those between tasks, which the master
// numbers.
constexpr int64_t kFirstLocalEdge = int64_t{1} << 40;

Status FindPeers(const Graph& part, TaskPart* task) {
  for (const Node* node : part.nodes()) {
    const Exchange exchange = node->traits().exchange;
    if (exchange == Exchange::kNone) continue;
    const bool sends = exchange == Exchange::kSends;
    task->exchanges = true;
    WEFT_ASSIGN_OR_RETURN(const std::string other,
                          node->Attr<std::string>(sends ? "recv_device" : "send_device"));
    WEFT_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(other));
    task->peers.insert(name.TaskName());
  }
  return absl::OkStatus();
}

}  // namespace

SessionDevices::SessionDevices(std::vector<Device*> all)
    : devices(std::move(all)), resources(std::make_unique<ResourceManager>()) {
  for (size_t i = 0; i < devices.size(); ++i) {
    kernels.push_back(std::make_unique<compile::KernelCache>());
  }
}

StatusOr<std::unique_ptr<TaskPart>> CompileTaskPart(Graph part, const PartOptions& options,
                                                    const Catalogue& catalogue,
                                                    const SessionDevices& devices,
                                                    ThreadPool* pool) {
  auto task = std::make_unique<TaskPart>();
  task->options = options;
  task->session = {.container = options.container, .resources = devices.resources.get()};
  task->definition = ExportGraph(part, {.assigned_devices = true});
  WEFT_RETURN_IF_ERROR(FindPeers(part, task.get()));
  task->changes_variables = absl::c_any_of(
      part.nodes(), [](const Node* node) { return compile::ChangesVariable(*node); });
  const auto incarnation_of = [&](const std::string& name) -> uint64_t {
    for (const Device* device : devices.devices) {
      if (device->name() == name) return device->attributes().incarnation;
    }
    return 0;
  };
  WEFT_ASSIGN_OR_RETURN(
      compile::Partitioned split,
      compile::PartitionGraph(part, {.place_of = [](const std::string& d) { return d; },
                                     .incarnation_of = incarnation_of,
                                     .first_edge = kFirstLocalEdge}));
  task->exchanges = task->exchanges || split.next_edge > kFirstLocalEdge;
  for (auto& [name, piece] : split.parts) {
    DevicePart compiled;
    compile::KernelCache* cache = nullptr;
    for (size_t i = 0; i < devices.devices.size(); ++i) {
      if (devices.devices[i]->name() != name) continue;
      compiled.device = devices.devices[i];
      cache = devices.kernels[i].get();
    }
    if (compiled.device == nullptr) return InvalidArgument("No such device at this task: ", name);
    const compile::PlanOptions plan{.kernels = &catalogue.kernels(),
                                    .device = compiled.device,
                                    .cache = cache,
                                    .fold = options.fold,
                                    .fuse = options.fuse};
    WEFT_ASSIGN_OR_RETURN(compiled.plan, compile::Plan::Compile(std::move(piece), plan));
    compiled.runner = std::make_unique<executor::PlanRunner>(compiled.plan.get(), pool);
    task->parts.push_back(std::move(compiled));
  }
  return task;
}

}  // namespace weft::step
