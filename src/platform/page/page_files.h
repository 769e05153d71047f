// SPDX-License-Identifier: Apache-2.0
// The files of web/, which travel in the program.
#pragma once

#include <map>
#include <string>

#include "absl/strings/string_view.h"

namespace weft::platform {

// By the path that a browser asks for: "/index.html".
const std::map<std::string, absl::string_view>& PageFiles();

}  // namespace weft::platform
