// SPDX-License-Identifier: Apache-2.0
// Objects of kinds that are not compiled in, held against the schema of their definition.
#pragma once

#include <string>

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

// `schema` is an openAPIV3Schema: types, required fields, choices and bounds; patterns and rules in
// CEL are not looked at. In the words of an API server; a field that is not in the schema is an
// unknown one. `path` is empty for the object itself.
void CheckAgainstSchema(const Json& value, const Json& schema, const std::string& path,
                        Problems* problems);

// Without the fields that the schema does not name, and with its defaults.
void PruneBySchema(const Json& schema, Json* value);

}  // namespace weft::platform
