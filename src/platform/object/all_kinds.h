// SPDX-License-Identifier: Apache-2.0
// The list of what kinds/ holds, which the build generates.
#pragma once

#include <vector>

#include "platform/object/resource_type.h"

namespace weft::platform {

void AddAllKinds(std::vector<ResourceType>* types);

}  // namespace weft::platform
