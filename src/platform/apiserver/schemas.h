// SPDX-License-Identifier: Apache-2.0
// JSON schemas of the kinds, for `kubectl explain`.
#pragma once

#include "net/json.h"
#include "platform/store/resource.h"

namespace weft::platform {

// Without its x-kubernetes-group-version-kind.
Json SchemaOf(const ResourceType& type);

}  // namespace weft::platform
