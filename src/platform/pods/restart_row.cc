// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/restart_row.h"

#include <algorithm>

namespace weft::platform {

void RestartRow::CountEnd(absl::Time started, absl::Time finished) {
  if (finished - started >= pacing_.steady_after) ends_ = 0;
  ++ends_;
  finished_ = finished;
}

absl::Time RestartRow::restart_time() const {
  if (pacing_.limit.has_value() && ends_ > *pacing_.limit) return absl::InfiniteFuture();
  if (ends_ <= 1) return finished_ + pacing_.first;
  absl::Duration pause = pacing_.second;
  for (int64_t i = 2; i < ends_ && pause < pacing_.longest; ++i) pause *= 2;
  return finished_ + std::min(pause, pacing_.longest);
}

}  // namespace weft::platform
