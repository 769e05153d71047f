// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/local_cluster.h"

#include <utility>

#include "weft/device/cpu/cpu_device.h"

namespace weft::cluster {
namespace {

class EngineRunner final : public StepRunner {
 public:
  // `own_devices`: of a session that shares no state; empty otherwise.
  EngineRunner(session::EngineOptions options, std::vector<std::unique_ptr<Device>> own_devices)
      : own_devices_(std::move(own_devices)), engine_(std::move(options)) {}

  Status Extend(GraphDef graph) override { return engine_.Extend(graph); }

  void Run(Step step, Done done) override {
    // Shared by the call, which writes to it, and its end, which reads it.
    auto extra = std::make_shared<Extra>();
    session::StepCall call{.feeds = std::move(step.feeds),
                           .fetches = std::move(step.fetches),
                           .targets = std::move(step.targets),
                           .cancellation = step.cancellation};
    if (step.trace) call.trace = &extra->trace;
    if (step.partition_graphs) call.partition_graphs = &extra->metadata.partition_graphs;
    engine_.Run(std::move(call), [extra, done = std::move(done)](
                                     StatusOr<std::vector<Tensor>> fetches) mutable {
      if (!fetches.ok()) {
        done(fetches.status());
        return;
      }
      StepResult result{.fetches = *std::move(fetches), .metadata = std::move(extra->metadata)};
      result.metadata.trace = extra->trace.Take();
      done(std::move(result));
    });
  }

 private:
  struct Extra {
    executor::StepTrace trace;
    session::RunMetadata metadata;
  };
  const std::vector<std::unique_ptr<Device>> own_devices_;
  session::StepEngine engine_;
};

bool WantsFolding(const tensorflow::GraphOptions& options) {
  return options.optimizer_options().opt_level() != tensorflow::OptimizerOptions::L0 &&
         options.rewrite_options().constant_folding() != tensorflow::RewriterConfig::OFF &&
         !options.rewrite_options().disable_meta_optimizer();
}
bool WantsFusion(const tensorflow::GraphOptions& options) {
  return options.optimizer_options().opt_level() != tensorflow::OptimizerOptions::L0 &&
         options.rewrite_options().remapping() != tensorflow::RewriterConfig::OFF &&
         !options.rewrite_options().disable_meta_optimizer();
}

}  // namespace

LocalCluster::LocalCluster(DeviceName task, session::EngineOptions engine)
    : task_(std::move(task)), engine_(std::move(engine)) {}

StatusOr<std::unique_ptr<StepRunner>> LocalCluster::OpenSession(
    const std::string&, const tensorflow::ConfigProto& config, Cancellation*) {
  session::EngineOptions options = engine_;
  options.soft_placement = config.allow_soft_placement();
  options.fold = WantsFolding(config.graph_options());
  options.fuse = WantsFusion(config.graph_options());
  std::vector<std::unique_ptr<Device>> own;
  if (config.isolate_session_state()) {
    options.devices.clear();
    for (size_t i = 0; i < engine_.devices.size(); ++i) {
      own.push_back(MakeCpuDevice(task_, static_cast<int>(i), engine_.pool));
      options.devices.push_back(own.back().get());
    }
  }
  return std::unique_ptr<StepRunner>(
      std::make_unique<EngineRunner>(std::move(options), std::move(own)));
}

std::vector<DeviceAttributes> LocalCluster::LocalDevices() {
  std::vector<DeviceAttributes> devices;
  for (const Device* device : engine_.devices) devices.push_back(device->attributes());
  return devices;
}

StatusOr<std::vector<DeviceAttributes>> LocalCluster::RemoteDevices(const std::vector<std::string>&,
                                                                    Cancellation*) {
  return std::vector<DeviceAttributes>();
}

Status LocalCluster::Cleanup(const std::vector<std::string>& containers,
                             const std::vector<std::string>&, Cancellation*) {
  for (Device* device : engine_.devices) {
    if (containers.empty()) device->resources().Cleanup(kDefaultContainer);
    for (const std::string& container : containers) device->resources().Cleanup(container);
  }
  return absl::OkStatus();
}

}  // namespace weft::cluster
