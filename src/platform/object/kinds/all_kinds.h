// SPDX-License-Identifier: Apache-2.0
// The generated list of what this folder holds.
#pragma once

#include <vector>

#include "platform/object/resource_type.h"

namespace weft::platform {

void AddAllKinds(std::vector<ResourceType>* types);

}  // namespace weft::platform
