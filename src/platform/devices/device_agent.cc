// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/device_agent.h"

#include <algorithm>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

#include "base/files.h"
#include "base/log.h"
#include "platform/object/fields.h"
#include "platform/object/object_time.h"
#include "platform/store/api_error.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kQuiet = absl::Seconds(30);
constexpr char kLostCondition[] = "weft.dev/DeviceLost";

// Of this start of this machine and, where agents keep each other away by a folder, of that.
std::string MachineIdentity(const std::string& folder) {
  RealFileSystem files;
  const std::string boot(absl::StripAsciiWhitespace(
      ReadFile(files, "/proc/sys/kernel/random/boot_id", 4096).value_or("")));
  struct stat found = {};
  if (folder.empty() || ::stat(folder.c_str(), &found) != 0)
    return absl::StrCat(boot, "/process ", ::getpid());
  return absl::StrCat(boot, "/", found.st_dev, ":", found.st_ino);
}

std::string HostName() {
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  return host;
}

}  // namespace

std::set<std::string> LostDevices(const Machine& machine) {
  std::set<std::string> lost;
  for (const DriverGpu& gpu : machine.gpus) {
    if (!gpu.gpu.is_healthy && !gpu.gpu.uuid.empty()) lost.insert(gpu.gpu.uuid);
  }
  for (const RdmaAdapter& adapter : machine.rdma) {
    if (adapter.active_ports == 0) lost.insert(adapter.name);
  }
  return lost;
}

DeviceAgent::DeviceAgent(Options options) : options_(std::move(options)) {}

StatusOr<std::unique_ptr<DeviceAgent>> DeviceAgent::Make(Options options) {
  std::unique_ptr<DeviceAgent> agent(new DeviceAgent(std::move(options)));
  const Options& all = agent->options_;
  agent->machine_ = ReadMachine(all.root, all.driver_library);
  if (!all.plugin_folder.empty()) {
    WEFT_ASSIGN_OR_RETURN(agent->plugins_, KubeletPlugins::Open(all.plugin_folder, all.plugins));
  }
  if (all.store == nullptr) return agent;
  NodeInventory::Options inventory;
  inventory.store = all.store;
  inventory.clock = all.clock;
  inventory.node = all.node;
  inventory.machine = MachineIdentity(all.plugin_folder);
  inventory.host = HostName();
  inventory.tells_amounts = all.plugin_folder.empty();
  inventory.heartbeat = all.heartbeat;
  agent->inventory_ = std::make_unique<NodeInventory>(std::move(inventory));
  agent->slices_ = std::make_unique<SlicePublisher>(all.store, all.node, all.claim_versions);
  agent->events_ = std::make_unique<EventRecorder>(all.store, all.clock, "weft-agent");
  return agent;
}

Status DeviceAgent::Step() {
  machine_ = LookAgain(machine_, options_.root, options_.driver_library);
  if (plugins_ != nullptr) {
    const Status served = plugins_->Step(machine_);
    if (!served.ok())
      WEFT_LOG_EVERY(WARNING, kQuiet) << "The kubelet is not served: " << served.message();
  }
  if (inventory_ == nullptr) return absl::OkStatus();
  const Status told = inventory_->Step(machine_);
  if (told.code() == absl::StatusCode::kFailedPrecondition) return told;
  if (!told.ok())
    WEFT_LOG_EVERY(WARNING, kQuiet) << "The node does not say what it has: " << told.message();
  if (!inventory_->is_ours()) return absl::OkStatus();
  if (options_.publishes_slices && slices_->is_possible()) {
    const Status listed = slices_->Step(machine_);
    if (!listed.ok())
      WEFT_LOG_EVERY(WARNING, kQuiet) << "Claims do not see our devices: " << listed.message();
  }
  TellPods();
  return absl::OkStatus();
}

void DeviceAgent::TellPods() {
  const std::set<std::string> lost = LostDevices(machine_);
  if (lost.empty() || options_.holders_socket.empty()) return;
  const StatusOr<std::vector<DeviceHolder>> holders = ListDeviceHolders(options_.holders_socket);
  if (!holders.ok()) {
    WEFT_LOG_EVERY(WARNING, kQuiet)
        << "Who has the devices that are lost is not known: " << holders.status().message();
    return;
  }
  for (const DeviceHolder& holder : *holders) {
    for (const std::string& id : holder.ids) {
      const std::string device = id.substr(0, id.find('/'));
      if (lost.count(device) != 0) TellPod(holder, device);
    }
  }
}

void DeviceAgent::TellPod(const DeviceHolder& holder, const std::string& device) {
  const ObjectName name = {holder.namespace_name, holder.pod};
  const StatusOr<ObjectPtr> pod = options_.store->Get(Pods(), name);
  if (!pod.ok()) return;
  if (!told_.insert(absl::StrCat(UidOf(**pod), " ", holder.container, " ", device)).second) return;
  const std::string message =
      absl::StrCat("Container ", holder.container, ": its device ", device, " (", holder.resource,
                   ") is lost. No other pod gets it; this one keeps it until it ends");
  events_->Record(**pod, "Warning", "DeviceLost", message);
  Json condition;
  condition.Set("type", kLostCondition);
  condition.Set("status", "True");
  condition.Set("reason", "DeviceLost");
  condition.Set("message", message);
  condition.Set("lastTransitionTime", FormatObjectTime(options_.clock->Now()));
  Json patch;
  SetField(&patch, {"status", "conditions"}, Json(Json::Array{std::move(condition)}));
  WriteOptions options;
  options.subresource = "status";
  const Status told =
      options_.store->Patch(Pods(), name, PatchKind::kStrategic, patch, options).status();
  if (!told.ok())
    WEFT_LOG(WARNING) << "Pod " << holder.pod << " does not say so: " << told.message();
}

void DeviceAgent::Leave() {
  if (inventory_ == nullptr || !inventory_->is_ours()) return;
  inventory_->Leave();
}

}  // namespace weft::platform
