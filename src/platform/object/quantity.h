// SPDX-License-Identifier: Apache-2.0
// Amounts of resources as Kubernetes writes them: 2, "500m", "1.5Gi", "1e3".
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "net/json.h"

namespace weft::platform {

// In thousandths, rounded up. InvalidArgument: "holds "0,1,3", ...", without a path.
StatusOr<int64_t> ParseQuantity(const Json& value);

// The shortest of "2", "1500m" and, with `is_binary`, "3Gi".
std::string FormatQuantity(int64_t thousandths, bool is_binary);

}  // namespace weft::platform
