// SPDX-License-Identifier: Apache-2.0
#include "weft/server/staleness.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace weft::server {
namespace {

constexpr absl::Duration kLongestWindow = absl::Seconds(10);

}  // namespace

std::string StalenessWindows::Observe(int64_t updates) {
  const absl::Duration now = clock_->Monotonic();
  absl::MutexLock lock(&mutex_);
  if (!begun_.has_value()) begun_ = now;
  ++count_;
  sum_ += updates;
  highest_ = std::max(highest_, updates);
  if (now - *begun_ < length_) return "";
  std::string line;
  if (highest_ > 0 || was_stale_) {
    line = absl::StrFormat("Staleness of %d updates: mean %.2f, highest %d", count_,
                           static_cast<double>(sum_) / static_cast<double>(count_), highest_);
  }
  was_stale_ = highest_ > 0;
  begun_ = now;
  length_ = std::min(2 * length_, kLongestWindow);
  count_ = sum_ = highest_ = 0;
  return line;
}

}  // namespace weft::server
