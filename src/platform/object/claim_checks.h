// SPDX-License-Identifier: Apache-2.0
// What an API server checks of a claim for storage, by itself and in templates, in its words.
#pragma once

#include <string>

#include "net/json.h"
#include "platform/object/field_reader.h"

namespace weft::platform {

// The claim's `spec`, at `path`.
void CheckClaimSpec(const Json& spec, const std::string& path, Problems* problems);

// What may not become of a claim's spec once it is there.
void CheckClaimUpdate(const Json& old, const Json& claim, Problems* problems);

}  // namespace weft::platform
