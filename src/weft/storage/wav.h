// SPDX-License-Identifier: Apache-2.0
// Sound as WAV. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "base/status.h"

namespace weft::storage {

// 16-bit PCM of samples in [-1, 1] (others are clamped), `channels` of them a frame.
// InvalidArgument if the samples are no whole number of frames or the file would pass 4 GB.
StatusOr<std::string> EncodeWav(absl::Span<const float> samples, int64_t channels,
                                int64_t sample_rate);

// The samples of a file: `bytes` are 16 bits each, the channels of a frame beside each other.
struct WavSound {
  int64_t channels = 1;
  int64_t sample_rate = 0;
  absl::string_view bytes;

  int64_t num_frames() const { return static_cast<int64_t>(bytes.size()) / (2 * channels); }
  // In [-1, 1).
  float At(int64_t frame, int64_t channel) const {
    const auto at = static_cast<size_t>(2 * (frame * channels + channel));
    const auto word = static_cast<uint16_t>(static_cast<uint8_t>(bytes[at]) |
                                            static_cast<uint8_t>(bytes[at + 1]) << 8);
    return static_cast<float>(static_cast<int16_t>(word)) * (1.0f / 32768);
  }
};
// InvalidArgument for other than 16-bit PCM. The result points into `file`.
StatusOr<WavSound> DecodeWav(absl::string_view file);

}  // namespace weft::storage
