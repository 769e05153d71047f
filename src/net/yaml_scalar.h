// SPDX-License-Identifier: Apache-2.0
// What a plain YAML word means.
#pragma once

#include <string>

#include "net/json.h"

namespace weft {

// null, a boolean, a number or else the text itself, by the rules of YAML 1.1 that Kubernetes'
// reader has.
Json ResolveYamlScalar(const std::string& text);

}  // namespace weft
