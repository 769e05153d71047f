// SPDX-License-Identifier: Apache-2.0
#include "platform/devices/kubelet_plugins.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"

#include "base/files.h"
#include "base/log.h"
#include "platform/devices/kubelet_call.h"
#include "proto/kubelet/pod_resources.pb.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);

// Another one for each kubelet that begins; empty while there is none.
std::string KubeletNow(const std::string& folder) {
  struct stat found = {};
  const std::string path = JoinPath(folder, "kubelet.sock");
  if (::stat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return "";
  return absl::StrCat(found.st_ino, "/", found.st_ctim.tv_sec, ".", found.st_ctim.tv_nsec);
}

}  // namespace

KubeletPlugins::KubeletPlugins(std::string folder, PluginOptions options, OwnedFd lock)
    : folder_(std::move(folder)), options_(std::move(options)), lock_(std::move(lock)) {}

KubeletPlugins::~KubeletPlugins() = default;

StatusOr<std::unique_ptr<KubeletPlugins>> KubeletPlugins::Open(const std::string& folder,
                                                               PluginOptions options) {
  const std::string path = JoinPath(folder, "weft-agent.lock");
  OwnedFd lock(::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.is_open()) {
    return FailedPrecondition("Cannot write into ", folder,
                              ", where the kubelet looks for device "
                              "plug-ins: ",
                              std::strerror(errno));
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    return FailedPrecondition("Another agent serves the devices of this machine already: it holds ",
                              path);
  }
  return std::unique_ptr<KubeletPlugins>(
      new KubeletPlugins(folder, std::move(options), std::move(lock)));
}

Status KubeletPlugins::Serve(const PluginResource& resource, const std::string& kubelet) {
  Served& served = served_[resource.name];
  // A kubelet that starts empties the folder.
  if (served.plugin != nullptr && !served.plugin->HasSocket()) {
    served.plugin = nullptr;
    served.told.clear();
  }
  if (served.plugin == nullptr) {
    StatusOr<std::unique_ptr<DevicePlugin>> plugin = DevicePlugin::Listen(
        folder_, resource, [this](const PluginResource& of, const std::vector<std::string>& ids) {
          absl::MutexLock lock(&mutex_);
          return AllocateDevices(machine_, options_, of, ids);
        });
    if (!plugin.ok()) return plugin.status();
    served.plugin = *std::move(plugin);
  }
  served.plugin->SetDevices(resource.devices);
  if (kubelet.empty() || served.told == kubelet) return absl::OkStatus();
  WEFT_RETURN_IF_ERROR(Annotate(served.plugin->Register(), resource.name));
  served.told = kubelet;
  WEFT_LOG(INFO) << "The kubelet knows of " << resource.devices.size() << " " << resource.name;
  return absl::OkStatus();
}

Status KubeletPlugins::Step(const Machine& machine) {
  {
    absl::MutexLock lock(&mutex_);
    machine_ = machine;
  }
  const std::string kubelet = KubeletNow(folder_);
  Status first;
  for (const PluginResource& resource : PluginResourcesOf(machine, options_)) {
    const Status served = Serve(resource, kubelet);
    if (first.ok()) first = served;
  }
  if (first.ok() && kubelet.empty() && !served_.empty())
    return Unavailable("There is no kubelet at ", folder_, " yet");
  return first;
}

StatusOr<std::vector<DeviceHolder>> ListDeviceHolders(const std::string& socket) {
  WEFT_ASSIGN_OR_RETURN(const std::string bytes,
                        CallKubelet(socket, "/v1.PodResourcesLister/List", "", kPatience));
  v1::ListPodResourcesResponse response;
  if (!response.ParseFromString(bytes))
    return DataLoss("What the kubelet at ", socket, " tells of its pods cannot be read");
  std::vector<DeviceHolder> holders;
  for (const v1::PodResources& pod : response.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      for (const v1::ContainerDevices& devices : container.devices()) {
        holders.push_back({pod.namespace_(),
                           pod.name(),
                           container.name(),
                           devices.resource_name(),
                           {devices.device_ids().begin(), devices.device_ids().end()}});
      }
    }
  }
  return holders;
}

}  // namespace weft::platform
