// SPDX-License-Identifier: Apache-2.0
// Summaries of pictures and sound: what ops of both kinds of summaries write in the same way.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::io {

// A serialized Summary with up to `most` pictures of [batch, height, width, channels]; pixels that
// are not finite get `bad_color`. InvalidArgument for other shapes.
StatusOr<std::string> SummarizeImages(const std::string& tag, const Tensor& tensor, int64_t most,
                                      const Tensor& bad_color);
// The same with clips of [batch, frames] or [batch, frames, channels] in [-1, 1].
StatusOr<std::string> SummarizeAudio(const std::string& tag, const Tensor& tensor, int64_t most,
                                     float sample_rate);

}  // namespace weft::ops::io
