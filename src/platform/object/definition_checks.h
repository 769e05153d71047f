// SPDX-License-Identifier: Apache-2.0
// What an API server checks of a CustomResourceDefinition's parts, in its words.
#pragma once

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

void DefaultDefinition(Json* definition);
// Names, versions, columns, paths of /scale, conversion, and that each schema is structural.
void CheckDefinitionParts(const Json& definition, Problems* problems);

}  // namespace weft::platform
