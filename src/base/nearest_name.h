// SPDX-License-Identifier: Apache-2.0
// "Did you mean": the known name closest to a mistyped one.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace weft {

// The member of `known` with the smallest edit distance to `name`, letters' case ignored; empty if
// none is within a third of the name's length.
std::string NearestName(absl::string_view name, const std::vector<std::string>& known);

}  // namespace weft
