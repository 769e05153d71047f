// SPDX-License-Identifier: Apache-2.0
// The devices of a machine as a kubelet counts and gives them: under which names, which go well
// together, and what a container needs to use them. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "platform/devices/machine.h"

namespace weft::platform {

// Unlike amounts on a Node object, each has an identity, by which the kubelet gives it.
struct PluginDevice {
  std::string id;  // of a share: "<the GPU's id>/<number>"
  bool is_healthy = true;
  int numa_node = -1;
  std::string group;  // those of one group go well together: linked GPUs, the shares of a GPU
  bool operator==(const PluginDevice&) const = default;
};

enum class PluginKind { kGpus, kShares, kAdapters };

struct PluginResource {
  std::string name;  // "nvidia.com/gpu"
  PluginKind kind = PluginKind::kGpus;
  std::vector<PluginDevice> devices;
  bool operator==(const PluginResource&) const = default;
};

struct PluginOptions {
  std::string gpu_name = "nvidia.com/gpu";
  std::string share_name = "aliyun.com/gpu-mem";  // one for each GiB
  std::string adapter_name = "weft.dev/rdma";
  // A GPU is given whole or in shares, never both: these, by index, in shares.
  bool shares_all = false;
  std::set<int> shared_gpus;
  std::string host_root;      // how the host calls the root that the machine was read below
  std::string driver_folder;  // of the host, with the driver's libraries; empty: none is mounted
  std::string driver_mount = "/usr/local/nvidia";  // where containers find it
};

// What there is, each with at least one device.
std::vector<PluginResource> PluginResourcesOf(const Machine& machine, const PluginOptions& options);

struct ContainerFiles {
  std::string host_path;
  std::string container_path;
};

struct DeviceAllocation {
  std::map<std::string, std::string> variables;
  std::vector<ContainerFiles> device_files;
  std::vector<ContainerFiles> mounts;  // to be read only
};

// NotFound for a device that is not there, FailedPrecondition for one that is lost, and for shares
// of two GPUs.
StatusOr<DeviceAllocation> AllocateDevices(const Machine& machine, const PluginOptions& options,
                                           const PluginResource& resource,
                                           const std::vector<std::string>& ids);

// `count` of `available`, those of `needed` among them: from as few groups as goes, and of those
// the ones that leave the least behind. Fewer when there are not as many.
std::vector<std::string> PreferDevices(const PluginResource& resource,
                                       const std::vector<std::string>& available,
                                       const std::vector<std::string>& needed, size_t count);

}  // namespace weft::platform
