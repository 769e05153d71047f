// SPDX-License-Identifier: Apache-2.0
// All resources of a machine, served to its kubelet, which comes and goes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/posix_file.h"
#include "base/status.h"
#include "platform/devices/device_plugin.h"
#include "platform/devices/plugin_devices.h"

namespace weft::platform {

// Of one thread, but for what the plug-ins ask.
class KubeletPlugins {
 public:
  // Takes the folder for itself: FailedPrecondition when another agent of this machine has it.
  static StatusOr<std::unique_ptr<KubeletPlugins>> Open(const std::string& folder,
                                                        PluginOptions options);
  ~KubeletPlugins();

  // To be called often: tells of what has changed on the machine, and tells a kubelet of us that
  // has not heard of us yet. An error says what does not go; the next call tries again.
  Status Step(const Machine& machine);

 private:
  struct Served {
    std::unique_ptr<DevicePlugin> plugin;
    std::string told;  // which kubelet knows of it; empty: none
  };
  KubeletPlugins(std::string folder, PluginOptions options, OwnedFd lock);
  Status Serve(const PluginResource& resource, const std::string& kubelet);

  const std::string folder_;
  const PluginOptions options_;
  const OwnedFd lock_;
  mutable absl::Mutex mutex_;
  Machine machine_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Served> served_;  // by resource; last: they ask for the machine
};

// Who has which devices, as the kubelet tells it at its socket for that.
struct DeviceHolder {
  std::string namespace_name;
  std::string pod;
  std::string container;
  std::string resource;
  std::vector<std::string> ids;
};
StatusOr<std::vector<DeviceHolder>> ListDeviceHolders(const std::string& socket);

}  // namespace weft::platform
