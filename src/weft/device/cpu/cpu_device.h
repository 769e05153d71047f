// SPDX-License-Identifier: Apache-2.0
// The host's processor as a device.
#pragma once

#include <memory>
#include <string>

#include "weft/kernel/device.h"

namespace weft {

// A CPU device named `/job:.../device:CPU:index` with a fresh incarnation. `threads` must outlive
// it.
std::unique_ptr<Device> MakeCpuDevice(const DeviceName& task, int index, ThreadPool* threads);

// `count` CPU devices, which share threads and memory.
class CpuDevices final : public DeviceFactory {
 public:
  explicit CpuDevices(int count) : count_(count) {}
  StatusOr<std::vector<std::unique_ptr<Device>>> Make(const DeviceName& task,
                                                      ThreadPool* threads) override;

 private:
  const int count_;
};

// One CPU device: what a program gets that does not choose.
DeviceFactory& StandardDevices();

}  // namespace weft
