// SPDX-License-Identifier: Apache-2.0
// Sound as WAV. Thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/types/span.h"

#include "base/status.h"

namespace weft::storage {

// 16-bit PCM of samples in [-1, 1] (others are clamped), `channels` of them a frame.
// InvalidArgument if the samples are no whole number of frames or the file would pass 4 GB.
StatusOr<std::string> EncodeWav(absl::Span<const float> samples, int64_t channels,
                                int64_t sample_rate);

}  // namespace weft::storage
