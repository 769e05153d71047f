// SPDX-License-Identifier: Apache-2.0
// Pictures as PNG. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"

#include "base/status.h"

namespace weft::storage {

// A PNG of `height` rows of `width` pixels of `channels` bytes: 1 grey, 3 RGB, 4 RGBA.
// InvalidArgument for other numbers of channels, an empty picture, or a wrong number of bytes.
StatusOr<std::string> EncodePng(absl::Span<const uint8_t> pixels, int64_t height, int64_t width,
                                int64_t channels);

}  // namespace weft::storage
