// SPDX-License-Identifier: Apache-2.0
// PNG files of 8 and 16 bits, of any kind. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::storage {

struct PngSize {
  int64_t height = 0, width = 0, channels = 0;
};

// Decodes into rows of pixels: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA; 0: as the file says. `bits`
// is 8, or 16 in the machine's order. `allocate` gives the memory; null ends it. InvalidArgument
// for what is no PNG, or one that is larger than its data can say.
Status DecodePng(absl::string_view data, int channels, int bits,
                 absl::FunctionRef<void*(const PngSize&)> allocate);

// Encodes rows of pixels of 8 or 16 bits. `compression` is 0 to 9, or -1 for the library's own.
StatusOr<std::string> EncodePngFile(const void* pixels, const PngSize& size, int bits,
                                    int compression);

}  // namespace weft::storage
