// SPDX-License-Identifier: Apache-2.0
// Serves the devices of one resource to the kubelet of this node, by its device plug-in interface.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/status.h"
#include "platform/devices/plugin_devices.h"

namespace grpc {
class Server;
class CallbackGenericService;
}  // namespace grpc

namespace weft::platform {

// A server on a socket of its own in the kubelet's folder. Thread-safe.
class DevicePlugin {
 public:
  using Allocator = std::function<StatusOr<DeviceAllocation>(const PluginResource& resource,
                                                             const std::vector<std::string>& ids)>;

  // Listens at <folder>/<socket>, where nobody does; readable for the owner alone. `allocate` is
  // called on gRPC's threads.
  static StatusOr<std::unique_ptr<DevicePlugin>> Listen(const std::string& folder,
                                                        PluginResource resource,
                                                        Allocator allocate);
  ~DevicePlugin();
  DevicePlugin(const DevicePlugin&) = delete;
  DevicePlugin& operator=(const DevicePlugin&) = delete;

  // Tells the kubelet of us, at <folder>/kubelet.sock.
  Status Register();
  // Whoever watches is told when something has changed.
  void SetDevices(std::vector<PluginDevice> devices);
  // False once somebody has taken our socket away, as a kubelet does when it starts.
  bool HasSocket() const;
  std::string name() const;

 private:
  class Call;
  class Service;
  DevicePlugin(std::string folder, PluginResource resource, Allocator allocate);
  // The bytes of an answer to a method that answers once.
  StatusOr<std::string> Answer(const std::string& method, const std::string& request);
  StatusOr<std::string> Allocate(const std::string& request);
  StatusOr<std::string> Prefer(const std::string& request);
  PluginResource Resource() const;
  std::string DeviceList() const;
  void AddWatcher(Call* call);
  void RemoveWatcher(Call* call);

  const std::string folder_;
  const std::string socket_;
  const Allocator allocate_;
  mutable absl::Mutex mutex_;
  PluginResource resource_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex watchers_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::set<Call*> watchers_ ABSL_GUARDED_BY(watchers_mutex_);
  std::unique_ptr<grpc::CallbackGenericService> service_;
  std::unique_ptr<grpc::Server> server_;  // last: it uses all of the above
  uint64_t inode_ = 0;                    // of the socket
};

}  // namespace weft::platform
