// SPDX-License-Identifier: Apache-2.0
// What a caller may ask about itself: who it is, and what it may do. Whoever has the token is the
// one user that there is, and may do everything.
#pragma once

#include <optional>
#include <string>

#include "net/json.h"

namespace weft::platform {

// The answer to a POST of that path; nothing where it is no review.
std::optional<Json> SelfReview(const std::string& path);

}  // namespace weft::platform
