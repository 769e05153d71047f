// SPDX-License-Identifier: Apache-2.0
// Times as objects hold them.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace weft::platform {

// "2026-11-21T12:20:02Z"
std::string FormatObjectTime(absl::Time time);
// RFC 3339; InfinitePast when it is none.
absl::Time ParseObjectTime(absl::string_view text);

}  // namespace weft::platform
