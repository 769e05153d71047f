// SPDX-License-Identifier: Apache-2.0
// What `weft agent` does for a node: looks at the machine again and again, serves its devices to
// the kubelet, and tells the cluster of them.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "platform/devices/kubelet_plugins.h"
#include "platform/devices/node_inventory.h"
#include "platform/devices/resource_slices.h"
#include "platform/reconcile/event_recorder.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Of one thread. Borrows store and clock.
class DeviceAgent {
 public:
  struct Options {
    ObjectStore* store = nullptr;  // null: nothing is told to a cluster
    const Clock* clock = nullptr;
    std::string node;
    std::string root;            // below which the machine's files are; "": the machine's own
    std::string driver_library;  // NVML; "" its usual name
    std::string plugin_folder;   // of the kubelet; empty: no kubelet is served
    std::string holders_socket;  // at which the kubelet tells who has which devices
    PluginOptions plugins;
    absl::Duration heartbeat = absl::Minutes(1);
    std::vector<std::string> claim_versions;  // of resource.k8s.io, as the cluster serves it
    bool publishes_slices = true;
  };
  // FailedPrecondition: another agent serves this machine.
  static StatusOr<std::unique_ptr<DeviceAgent>> Make(Options options);

  // To be called every few seconds. FailedPrecondition: this node is not ours; what else goes
  // wrong is logged and tried again.
  Status Step();
  // Before an end that is meant: nobody shall wait for us.
  void Leave();

 private:
  explicit DeviceAgent(Options options);
  void TellPods();
  void TellPod(const DeviceHolder& holder, const std::string& device);

  const Options options_;
  Machine machine_;
  std::unique_ptr<KubeletPlugins> plugins_;
  std::unique_ptr<NodeInventory> inventory_;
  std::unique_ptr<SlicePublisher> slices_;
  std::unique_ptr<EventRecorder> events_;
  std::set<std::string> told_;  // of whom and which device
};

// GPUs by UUID and adapters by name that were there and are lost.
std::set<std::string> LostDevices(const Machine& machine);

}  // namespace weft::platform
