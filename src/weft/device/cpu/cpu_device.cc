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

}  // namespace weft
