// SPDX-License-Identifier: Apache-2.0
// What config maps and secrets hold: texts by name.
#pragma once

#include <string>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

// Keys, size and what was said to stay. `sized` is the field that is told when it is too much.
void CheckData(const Json* old, const Json& object, const std::string& sized, Problems* problems);

// How many texts it holds.
Json DataCountCell(const Json& object, absl::Time now);

}  // namespace weft::platform
