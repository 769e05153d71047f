// SPDX-License-Identifier: Apache-2.0
// The op catalogue as text, for `weft inspect --ops` and the tests that hold it against
// TensorFlow's.
#pragma once

#include <string>

#include "base/status.h"
#include "weft/graph/op_registry.h"

namespace weft {

// A JSON array of OpDefs in protobuf's JSON form with proto field names, sorted by op name.
// Thread-safe.
StatusOr<std::string> OpListJson(const OpRegistry& ops);

}  // namespace weft
