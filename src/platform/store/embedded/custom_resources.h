// SPDX-License-Identifier: Apache-2.0
// Kinds that are not compiled in: from a CustomResourceDefinition to a type that is served.
#pragma once

#include "absl/time/time.h"

#include "base/status.h"
#include "net/json.h"
#include "platform/store/resource.h"

namespace weft::platform {

bool IsDefinition(const ResourceType& type);

// ObjectInvalid names the fields of the definition that make no sense.
StatusOr<ResourceType> ReadDefinition(const Json& definition);

// What a server says of a definition once its kind is served.
void SetDefinitionStatus(absl::Time now, Json* definition);

}  // namespace weft::platform
