// SPDX-License-Identifier: Apache-2.0
// Objects of a task that its kernels find by their device.
#pragma once

#include <string>
#include <utility>

#include "weft/kernel/device.h"

namespace weft {

// Borrows `offered` for as long as the device lives. The container's name begins with a blank:
// those of clients begin with a letter or a digit.
template <typename T>
class DeviceOffer final : public Resource {
 public:
  DeviceOffer(std::string description, T* offered)
      : description_(std::move(description)), offered_(offered) {}
  std::string DebugString() const override { return description_; }

  static void Make(Device* device, const char* container, const char* description, T* offered) {
    device->resources()
        .LookupOrCreate<DeviceOffer>(container, "",
                                     [&]() -> StatusOr<Ref<DeviceOffer>> {
                                       return MakeRef<DeviceOffer>(description, offered);
                                     })
        .IgnoreError();
  }
  // Null where nothing is offered.
  static T* Find(Device* device, const char* container) {
    StatusOr<Ref<DeviceOffer>> found = device->resources().Lookup<DeviceOffer>(container, "");
    return found.ok() ? (*found)->offered_ : nullptr;
  }

 private:
  const std::string description_;
  T* const offered_;
};

}  // namespace weft
