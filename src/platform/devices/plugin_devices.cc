// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/plugin_devices.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace weft::platform {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;
// A list of devices travels in one message, of which the kubelet takes 4 MiB.
constexpr int64_t kMostSharesOfGpu = 1024;

bool IsShared(const PluginOptions& options, size_t index) {
  return options.shares_all || options.shared_gpus.count(static_cast<int>(index)) != 0;
}

// One that no program has ever seen has no identity that would stay.
std::string IdOf(const DriverGpu& gpu) { return gpu.gpu.uuid; }

void AddShares(const DriverGpu& gpu, PluginResource* shares) {
  const int64_t count = std::min(gpu.gpu.memory / kGiB, kMostSharesOfGpu);
  for (int64_t i = 0; i < count; ++i) {
    shares->devices.push_back(
        {absl::StrCat(IdOf(gpu), "/", i), gpu.gpu.is_healthy, gpu.gpu.numa_node, IdOf(gpu)});
  }
}

// The GPUs of these ids, by the machine's order.
StatusOr<std::vector<const DriverGpu*>> FindGpus(const Machine& machine,
                                                 const std::set<std::string>& ids) {
  std::vector<const DriverGpu*> found;
  for (const DriverGpu& gpu : machine.gpus) {
    if (ids.count(IdOf(gpu)) == 0) continue;
    if (!gpu.gpu.is_healthy) return FailedPrecondition("GPU ", IdOf(gpu), " is lost");
    found.push_back(&gpu);
  }
  if (found.size() != ids.size()) {
    return NotFound("There are no such GPUs here: ", absl::StrJoin(ids, ", "), ", only ",
                    machine.gpus.size(), " others");
  }
  return found;
}

ContainerFiles DeviceFile(const PluginOptions& options, const std::string& path) {
  return {options.host_root + path, path};
}

// "/dev/nvidia3" is of one GPU, "/dev/nvidiactl" of all.
bool IsOfOneGpu(const std::string& path) {
  return path.size() > 11 && path.find_first_not_of("0123456789", 11) == std::string::npos;
}

void GiveGpus(const Machine& machine, const PluginOptions& options,
              const std::vector<const DriverGpu*>& gpus, DeviceAllocation* given) {
  std::vector<std::string> ids;
  for (const DriverGpu* gpu : gpus) {
    ids.push_back(IdOf(*gpu));
    const std::string file = absl::StrCat("/dev/nvidia", gpu->minor);
    const auto& files = machine.driver_files;
    if (std::find(files.begin(), files.end(), file) != files.end())
      given->device_files.push_back(DeviceFile(options, file));
  }
  for (const std::string& file : machine.driver_files) {
    if (!IsOfOneGpu(file)) given->device_files.push_back(DeviceFile(options, file));
  }
  given->variables["NVIDIA_VISIBLE_DEVICES"] = absl::StrJoin(ids, ",");
  given->variables["CUDA_VISIBLE_DEVICES"] = absl::StrJoin(ids, ",");
  given->variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  if (!options.driver_folder.empty())
    given->mounts.push_back({options.driver_folder, options.driver_mount});
}

StatusOr<DeviceAllocation> GiveAdapters(const Machine& machine, const PluginOptions& options,
                                        const std::vector<std::string>& ids) {
  DeviceAllocation given;
  std::set<std::string> files;  // one is of all adapters
  for (const std::string& id : ids) {
    const auto adapter =
        std::find_if(machine.rdma.begin(), machine.rdma.end(),
                     [&](const RdmaAdapter& candidate) { return candidate.name == id; });
    if (adapter == machine.rdma.end()) return NotFound("There is no adapter ", id, " here");
    if (adapter->active_ports == 0) return FailedPrecondition("Adapter ", id, " has no link");
    files.insert(adapter->files.begin(), adapter->files.end());
  }
  for (const std::string& file : files) given.device_files.push_back(DeviceFile(options, file));
  given.variables["WEFT_RDMA_ADAPTERS"] = absl::StrJoin(ids, ",");
  // What libraries that move tensors read.
  given.variables["NCCL_IB_HCA"] = absl::StrCat("=", absl::StrJoin(ids, ","));
  return given;
}

}  // namespace

std::vector<PluginResource> PluginResourcesOf(const Machine& machine,
                                              const PluginOptions& options) {
  PluginResource gpus{options.gpu_name, PluginKind::kGpus, {}};
  PluginResource shares{options.share_name, PluginKind::kShares, {}};
  PluginResource adapters{options.adapter_name, PluginKind::kAdapters, {}};
  for (size_t i = 0; i < machine.gpus.size(); ++i) {
    const DriverGpu& gpu = machine.gpus[i];
    if (IdOf(gpu).empty()) continue;
    if (IsShared(options, i)) {
      AddShares(gpu, &shares);
    } else {
      gpus.devices.push_back({IdOf(gpu), gpu.gpu.is_healthy, gpu.gpu.numa_node,
                              absl::StrCat("island ", gpu.gpu.island)});
    }
  }
  for (const RdmaAdapter& adapter : machine.rdma) {
    adapters.devices.push_back({adapter.name, adapter.active_ports > 0, adapter.numa_node,
                                absl::StrCat("node ", adapter.numa_node)});
  }
  std::vector<PluginResource> resources;
  for (PluginResource* resource : {&gpus, &shares, &adapters}) {
    if (!resource->devices.empty()) resources.push_back(std::move(*resource));
  }
  return resources;
}

StatusOr<DeviceAllocation> AllocateDevices(const Machine& machine, const PluginOptions& options,
                                           const PluginResource& resource,
                                           const std::vector<std::string>& ids) {
  if (ids.empty()) return InvalidArgument("No device of ", resource.name, " is named");
  if (resource.kind == PluginKind::kAdapters) return GiveAdapters(machine, options, ids);
  std::set<std::string> gpus;
  for (const std::string& id : ids) gpus.insert(id.substr(0, id.find('/')));
  WEFT_ASSIGN_OR_RETURN(const std::vector<const DriverGpu*> found, FindGpus(machine, gpus));
  DeviceAllocation given;
  GiveGpus(machine, options, found, &given);
  if (resource.kind == PluginKind::kGpus) return given;
  if (found.size() > 1) {
    return FailedPrecondition(resource.name, " of one container comes from one GPU, but ",
                              ids.size(), " GiB are free only on ", found.size(), " together");
  }
  // As programs know them that were written for shares of this name.
  given.variables["ALIYUN_COM_GPU_MEM_CONTAINER"] = absl::StrCat(ids.size());
  given.variables["ALIYUN_COM_GPU_MEM_DEV"] = absl::StrCat(found[0]->gpu.memory / kGiB);
  return given;
}

std::vector<std::string> PreferDevices(const PluginResource& resource,
                                       const std::vector<std::string>& available,
                                       const std::vector<std::string>& needed, size_t count) {
  const std::set<std::string> free(available.begin(), available.end());
  std::vector<std::string> chosen = needed;
  const auto is_chosen = [&](const std::string& id) {
    return std::find(chosen.begin(), chosen.end(), id) != chosen.end();
  };
  // In the order of the devices.
  std::map<std::string, std::vector<std::string>> groups;
  std::set<std::string> begun;
  for (const PluginDevice& device : resource.devices) {
    if (is_chosen(device.id))
      begun.insert(device.group);
    else if (device.is_healthy && free.count(device.id) != 0)
      groups[device.group].push_back(device.id);
  }
  while (chosen.size() < count && !groups.empty()) {
    const size_t wanted = count - chosen.size();
    // First those that are begun, then the smallest one that is large enough, else the largest.
    const auto rank = [&](const auto& group) {
      const size_t size = group.second.size();
      const bool is_enough = size >= wanted;
      return std::tuple(begun.count(group.first) == 0, !is_enough,
                        is_enough ? size : kMostSharesOfGpu * 1024 - size);
    };
    const auto best = std::min_element(
        groups.begin(), groups.end(),
        [&](const auto& one, const auto& other) { return rank(one) < rank(other); });
    for (const std::string& id : best->second) {
      if (chosen.size() < count) chosen.push_back(id);
    }
    groups.erase(best);
  }
  return chosen;
}

}  // namespace weft::platform
