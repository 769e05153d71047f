// SPDX-License-Identifier: Apache-2.0
// Which container of a pod a request is about.
#pragma once

#include <string>

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// The name of the one that is asked for, or of the only one when nobody says (`asked` is empty). A
// bad request lists those there are.
StatusOr<std::string> ChooseContainer(const Json& pod, const std::string& asked);

}  // namespace weft::platform
