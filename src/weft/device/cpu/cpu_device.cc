// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/cpu_device.h"

#include <random>

namespace weft {

std::unique_ptr<Device> MakeCpuDevice(const DeviceName& task, int index, ThreadPool* threads) {
  DeviceName name = task;
  name.type = "CPU";
  name.index = index;
  std::random_device entropy;
  const uint64_t incarnation = (uint64_t{entropy()} << 32 | entropy()) | 1;
  DeviceAttributes attributes{.name = name.ToString(),
                              .type = "CPU",
                              .memory_limit_bytes = 256 << 20,
                              .incarnation = incarnation,
                              .description = "host processor"};
  return std::make_unique<Device>(std::move(attributes), &HostAllocator(), threads);
}

StatusOr<std::vector<std::unique_ptr<Device>>> CpuDevices::Make(const DeviceName& task,
                                                                ThreadPool* threads) {
  if (count_ < 1) return InvalidArgument("A task needs a CPU device, got a number of ", count_);
  std::vector<std::unique_ptr<Device>> all;
  for (int i = 0; i < count_; ++i) all.push_back(MakeCpuDevice(task, i, threads));
  return all;
}

DeviceFactory& StandardDevices() {
  static auto* const devices = new CpuDevices(1);
  return *devices;
}

}  // namespace weft
