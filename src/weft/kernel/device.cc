// SPDX-License-Identifier: Apache-2.0
#include "weft/kernel/device.h"

#include <set>
#include <utility>

namespace weft {

StatusOr<std::vector<std::unique_ptr<Device>>> JoinedDevices::Make(const DeviceName& task,
                                                                   ThreadPool* threads) {
  std::vector<std::unique_ptr<Device>> all;
  std::set<std::string> names;
  for (DeviceFactory* factory : factories_) {
    WEFT_ASSIGN_OR_RETURN(std::vector<std::unique_ptr<Device>> made, factory->Make(task, threads));
    for (std::unique_ptr<Device>& device : made) {
      if (!names.insert(device->name()).second) {
        return AlreadyExists("Two devices are called ", device->name());
      }
      all.push_back(std::move(device));
    }
  }
  return all;
}

}  // namespace weft
