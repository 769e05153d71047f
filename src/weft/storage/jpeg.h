// SPDX-License-Identifier: Apache-2.0
// Pictures as JPEG, by libjpeg-turbo. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "base/status.h"

namespace weft::storage {

struct JpegSize {
  int64_t height = 0, width = 0, channels = 0;
};

struct JpegDecoding {
  int channels = 0;                  // 1 grey, 3 RGB; 0: as the file says
  int ratio = 1;                     // shrinks each side by 1, 2, 4 or 8
  bool fancy_upscaling = true;       // smooth chroma
  bool accurate = false;             // the slower transform
  bool recovers_truncated = false;   // lines that are missing repeat the last one
  float acceptable_fraction = 1.0f;  // of the lines; those that are missing are black
  bool crops = false;                // only this window of the picture:
  int64_t crop_y = 0, crop_x = 0, crop_height = 0, crop_width = 0;
};

// Gives the memory for a picture's pixels; null ends the decoding.
using AllocatePixels = absl::FunctionRef<uint8_t*(const JpegSize&)>;

// Decodes into rows of pixels. InvalidArgument for what is no JPEG, is cut off, is larger than 2^29
// bytes or than its data can say, has over 500 scans, or has no such window.
Status DecodeJpeg(absl::string_view data, const JpegDecoding& decoding, AllocatePixels allocate);
// From the header alone.
StatusOr<JpegSize> JpegSizeOf(absl::string_view data);

struct JpegEncoding {
  int quality = 95;
  bool progressive = false, optimizes = false, chroma_downsampling = true;
  bool density_in_cm = false;  // else dots per inch
  int x_density = 300, y_density = 300;
  std::string xmp;  // metadata, if not empty
};

// `channels` is 1 or 3; `pixels` are height rows of width pixels. InvalidArgument for sizes that a
// JPEG cannot have.
StatusOr<std::string> EncodeJpeg(absl::Span<const uint8_t> pixels, const JpegSize& size,
                                 const JpegEncoding& encoding);

}  // namespace weft::storage
