// SPDX-License-Identifier: Apache-2.0
// A device library as a file: found, tried out, opened and looked through.
#pragma once

#include <string>

#include "base/status.h"
#include "weft/device/plugin/weft_device.h"

namespace weft::plugin {

// Addresses in a device's memory are multiples of it.
inline constexpr uint64_t kAddressStep = 64;

// The table of the library at `path`, which stays loaded. Errors name the file and what is wrong.
StatusOr<const weft_device_api*> OpenLibrary(const std::string& path);

// The status of a call of the library: `what` is what was tried.
Status ToStatus(int code, const char* message, absl::string_view what);

}  // namespace weft::plugin
