// SPDX-License-Identifier: Apache-2.0
// Serialized tensorflow.Summary messages: what summary ops return and event files hold.
// Thread-safe.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#include "base/status.h"
#include "weft/tensor/tensor.h"

namespace weft::storage {

std::string ScalarSummary(absl::string_view tag, float value);
// Of any real dtype. InvalidArgument, naming the tag, for NaN, infinities and other dtypes.
StatusOr<std::string> HistogramSummary(absl::string_view tag, const Tensor& values);
// For TensorBoard's text page: a tensor of strings (InvalidArgument otherwise).
StatusOr<std::string> TextSummary(absl::string_view tag, const Tensor& text);
// A tensor for any plugin: `metadata` is a serialized SummaryMetadata (may be empty).
StatusOr<std::string> TensorSummary(absl::string_view tag, const Tensor& tensor,
                                    absl::string_view metadata);
// The older form, under a node's name instead of a tag.
StatusOr<std::string> NodeTensorSummary(absl::string_view node_name, const Tensor& tensor);
// Encoded sound (WAV) of `frames` samples a channel.
std::string AudioSummary(absl::string_view tag, float sample_rate, int64_t channels, int64_t frames,
                         absl::string_view wav);
// An encoded picture (PNG); `channels` is 1, 3 or 4.
std::string ImageSummary(absl::string_view tag, int height, int width, int channels,
                         absl::string_view png);
// All values of all of them. InvalidArgument if one is malformed or a tag comes twice.
StatusOr<std::string> MergeSummaries(absl::Span<const std::string> summaries);

}  // namespace weft::storage
