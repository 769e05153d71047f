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

}  // namespace weft
