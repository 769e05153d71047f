// SPDX-License-Identifier: Apache-2.0
// Texts made smaller, in the format of RFC 1950.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft {

// Quickly rather than as small as can be.
std::string Deflate(absl::string_view text);

// DataLoss where `bytes` are not from Deflate, or become more than `most` bytes.
StatusOr<std::string> Inflate(absl::string_view bytes, size_t most);

}  // namespace weft
