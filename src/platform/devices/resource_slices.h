// SPDX-License-Identifier: Apache-2.0
// The GPUs and adapters of a machine as ResourceSlices, from which claims choose (dynamic resource
// allocation).
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "net/json.h"
#include "platform/devices/machine.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// The name of those who serve claims, which DeviceClasses select by.
inline constexpr char kDeviceDriver[] = "devices.weft.dev";

// What a slice lists: each with "name", "attributes" and "capacity". `version` is that of the API:
// v1, v1beta2 or v1beta1. What is lost is not listed.
Json DescribeDevices(const Machine& machine, const std::string& version);

// Of one node, in one slice; the API takes 128 devices in one, beyond which devices are left out.
// Of one thread.
class SlicePublisher {
 public:
  // `versions` are those that the cluster serves of resource.k8s.io.
  SlicePublisher(ObjectStore* store, std::string node, const std::vector<std::string>& versions);

  // True when the cluster has an API that we know.
  bool is_possible() const { return !version_.empty(); }
  const std::string& version() const { return version_; }
  // Makes the slice, or replaces it where something has changed.
  Status Step(const Machine& machine);
  // Removes it.
  void Leave();

 private:
  std::string SliceName() const;

  ObjectStore* const store_;
  const std::string node_;
  std::string version_;
  ResourceType type_;
  std::string told_;
  bool has_told_ = false;
};

}  // namespace weft::platform
