// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/registered_graph.h"

#include <utility>

#include "proto/tensorflow/config.pb.h"
#include "weft/compile/partition.h"
#include "weft/graph/device_name.h"
#include "weft/graph/import.h"

namespace weft::cluster {
namespace {

// Edges between devices of one task are numbered apart from those between tasks, which the master
// numbers.
constexpr int64_t kFirstLocalEdge = int64_t{1} << 40;

Status FindPeers(const Graph& part, RegisteredGraph* graph) {
  for (const Node* node : part.nodes()) {
    const bool sends = node->op() == "_Send" || node->op() == "_HostSend";
    const bool receives = node->op() == "_Recv" || node->op() == "_HostRecv";
    if (!sends && !receives) continue;
    graph->exchanges = true;
    WEFT_ASSIGN_OR_RETURN(const std::string other,
                          node->Attr<std::string>(sends ? "recv_device" : "send_device"));
    WEFT_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(other));
    graph->peers.insert(name.TaskName());
  }
  return absl::OkStatus();
}

}  // namespace

RegisterOptions OptionsFromConfig(const tensorflow::ConfigProto& config) {
  const tensorflow::GraphOptions& options = config.graph_options();
  const bool optimise =
      options.optimizer_options().opt_level() != tensorflow::OptimizerOptions::L0 &&
      !options.rewrite_options().disable_meta_optimizer();
  using tensorflow::RewriterConfig;
  return {.fold = optimise && options.rewrite_options().constant_folding() != RewriterConfig::OFF,
          .fuse = optimise && options.rewrite_options().remapping() != RewriterConfig::OFF};
}

StatusOr<std::shared_ptr<RegisteredGraph>> CompilePart(Graph part, const RegisterOptions& options,
                                                       const Catalogue& catalogue,
                                                       const SessionDevices& devices,
                                                       ThreadPool* pool) {
  auto graph = std::make_shared<RegisteredGraph>();
  graph->definition = ExportGraph(part, {.assigned_devices = true});
  WEFT_RETURN_IF_ERROR(FindPeers(part, graph.get()));
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
  graph->exchanges = graph->exchanges || split.next_edge > kFirstLocalEdge;
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
    graph->parts.push_back(std::move(compiled));
  }
  return graph;
}

}  // namespace weft::cluster
