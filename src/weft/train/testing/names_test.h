// SPDX-License-Identifier: Apache-2.0
// For tests: tensors by name, as sessions take them.
#pragma once

#include <string>

#include "absl/strings/str_cat.h"

#include "weft/graph/graph.h"

namespace weft::train::testing {

inline std::string NameOf(const Endpoint& x) { return absl::StrCat(x.node->name(), ":", x.port); }

}  // namespace weft::train::testing
