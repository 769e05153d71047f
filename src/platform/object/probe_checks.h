// SPDX-License-Identifier: Apache-2.0
// What an API server checks of a container's probes and hooks, in its words.
#pragma once

#include <string>

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

// Probes and lifecycle hooks of the container at `path`.
void CheckProbes(const Json& container, const std::string& path, int64_t grace_seconds,
                 bool may_have_some, Problems* problems);

// 1 to 65535.
void CheckPortNumber(const Json& at, const std::string& path, int64_t number, Problems* problems);

// Of a user or group, where it is there.
void CheckUserId(const Json& context, const std::string& path, const char* field,
                 Problems* problems);

}  // namespace weft::platform
