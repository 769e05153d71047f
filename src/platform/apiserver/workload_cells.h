// SPDX-License-Identifier: Apache-2.0
// The columns that kubectl shows of Kubernetes' own owners of pods, and of what belongs to them.
#pragma once

#include <vector>

#include "absl/time/time.h"

#include "net/json.h"
#include "platform/store/resource.h"

namespace weft::platform {

struct Layout {
  std::vector<PrinterColumn> columns;
  std::vector<Json> (*cells)(const Json& object, absl::Time now);
};

// Nothing in `columns` when the type is none of them.
Layout WorkloadLayoutOf(const ResourceType& type);

}  // namespace weft::platform
