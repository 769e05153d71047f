// SPDX-License-Identifier: Apache-2.0
// JSON schemas of the kinds, for `kubectl explain`.
#pragma once

#include <string>

#include "net/json.h"
#include "platform/store/resource.h"

namespace weft::platform {

// Without its x-kubernetes-group-version-kind. A whole one names all fields; kubectl takes the
// other one for its patches, and must find no lists there, whose merge keys it knows better.
Json SchemaOf(const ResourceType& type, const std::string& version, bool is_whole);

}  // namespace weft::platform
