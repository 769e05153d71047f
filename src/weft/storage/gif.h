// SPDX-License-Identifier: Apache-2.0
// Pictures as GIF, by giflib. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::storage {

struct GifSize {
  int64_t frames = 0, height = 0, width = 0;
};

// Decodes all frames, or the first alone, into RGB pixels, each frame over the one before it. Those
// that are cut off are left away, but for the first. `allocate` gives the memory; null ends it.
// InvalidArgument for what is no GIF or is larger than its data can say.
Status DecodeGif(absl::string_view data, bool first_only,
                 absl::FunctionRef<uint8_t*(const GifSize&)> allocate);

}  // namespace weft::storage
