// SPDX-License-Identifier: Apache-2.0
// Kinds that are not compiled in: from a CustomResourceDefinition to a type that is served.
#pragma once

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/store/resource.h"

namespace weft::platform {

bool IsDefinition(const ResourceType& type);

// What a server says of a definition once its kind is served.
void SetDefinitionStatus(absl::Time now, Json* definition);

}  // namespace weft::platform
