// SPDX-License-Identifier: Apache-2.0
// The types of objects that tuning cares for.
#pragma once

#include "platform/store/resource.h"

namespace weft::platform {

const ResourceType& Experiments();
const ResourceType& Trials();
const ResourceType& Suggestions();

}  // namespace weft::platform
