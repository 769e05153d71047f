// SPDX-License-Identifier: Apache-2.0
// A kernel of a device library.
#pragma once

#include "weft/device/plugin/weft_device.h"
#include "weft/kernel/kernel_registry.h"

namespace weft::plugin {

// Makes kernel `number` of the library.
KernelFactory MakePluginKernel(const weft_device_api* api, size_t number);

}  // namespace weft::plugin
