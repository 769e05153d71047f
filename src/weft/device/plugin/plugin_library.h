// SPDX-License-Identifier: Apache-2.0
// A device library as a file: found, tried out, opened and looked through.
#pragma once

#include <string>

#include "base/status.h"
#include "weft/device/plugin/weft_device.h"

namespace weft::plugin {

// The table of the library at `path`, which stays loaded. Errors name the file and what is wrong.
StatusOr<const weft_device_api*> OpenLibrary(const std::string& path);

// The status of a call of the library: `what` is what was tried.
Status ToStatus(int code, const char* message, absl::string_view what);

}  // namespace weft::plugin
