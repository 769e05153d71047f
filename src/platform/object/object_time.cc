// SPDX-License-Identifier: Apache-2.0
#include "platform/object/object_time.h"

namespace weft::platform {

std::string FormatObjectTime(absl::Time time) {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time, absl::UTCTimeZone());
}

absl::Time ParseObjectTime(absl::string_view text) {
  absl::Time time;
  std::string error;
  return absl::ParseTime(absl::RFC3339_full, text, &time, &error) ? time : absl::InfinitePast();
}

}  // namespace weft::platform
