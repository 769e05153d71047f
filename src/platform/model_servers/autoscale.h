// SPDX-License-Identifier: Apache-2.0
// How many servers there shall be, by the requests that wait or run at them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

#include "platform/object/model_server.h"

namespace weft::platform {

// What was wanted when, not older than both settling times.
struct ScalingMemory {
  std::deque<std::pair<absl::Time, int64_t>> wanted;
};

struct ScalingAnswer {
  int64_t replicas = 0;
  std::string why;  // empty: it stays
};

// As Kubernetes' own autoscaler does: as many as bring each server to the target, nothing for less
// than a tenth of difference, at most twice as many (or four more) at once. `loads` are the ready
// servers, nothing for one that did not say; for fewer servers such a one counts as at the target.
// `current` is what there shall be so far.
ScalingAnswer NextReplicas(const ServerScaling& scaling, int64_t current,
                           const std::vector<std::optional<double>>& loads, absl::Time now,
                           ScalingMemory* memory);

}  // namespace weft::platform
