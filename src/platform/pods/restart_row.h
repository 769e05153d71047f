// SPDX-License-Identifier: Apache-2.0
// How long what has ended waits before it is started again.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace weft::platform {

// How long, and how often that happens; as a kubelet does it.
struct RestartPacing {
  absl::Duration first = absl::ZeroDuration();
  absl::Duration second = absl::Seconds(10);  // doubles from here
  absl::Duration longest = absl::Minutes(5);
  absl::Duration steady_after = absl::Minutes(10);  // what ran this long begins a new row
  std::optional<int64_t> limit;                     // of restarts in a row
};

// Ends of one container in a row.
class RestartRow {
 public:
  explicit RestartRow(const RestartPacing& pacing) : pacing_(pacing) {}

  // So many ends had come before anybody counted here.
  void Resume(int64_t ends) { ends_ = ends; }
  void CountEnd(absl::Time started, absl::Time finished);
  // When the next run may begin; InfiniteFuture: the row is as long as it may be.
  absl::Time restart_time() const;

 private:
  const RestartPacing pacing_;
  int64_t ends_ = 0;
  absl::Time finished_;
};

}  // namespace weft::platform
