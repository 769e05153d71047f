// SPDX-License-Identifier: Apache-2.0
// Batch normalization by given statistics: what each channel is moved and scaled by.
#pragma once

#include <cmath>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::ops::nn {

inline Status CheckVector(const Tensor& tensor, int64_t channels, const char* what) {
  if (tensor.rank() != 1)
    return InvalidArgument(what, " must be 1-dimensional, got ", tensor.shape().ToString());
  if (tensor.dim(0) == channels) return absl::OkStatus();
  return InvalidArgument(what, " must have the same number of elements as the channels of x, got ",
                         tensor.dim(0), " and ", channels);
}

// y = (x - mean) * factor + shift, channel by channel.
struct GivenNorm {
  std::vector<float> mean, factor, shift;
};

// Of float inputs scale, offset, mean and variance from input `first` on.
inline StatusOr<GivenNorm> GivenNormOf(const KernelContext& c, int first, int64_t channels,
                                       double epsilon) {
  const char* const names[] = {"scale", "offset", "mean", "variance"};
  for (int i = 0; i < 4; ++i) {
    WEFT_RETURN_IF_ERROR(CheckVector(c.input(first + i), channels, names[i]));
  }
  const auto at = [&](int i) { return c.input(first + i).span<float>(); };
  GivenNorm norm{{at(2).begin(), at(2).end()}, {}, {at(1).begin(), at(1).end()}};
  for (int64_t i = 0; i < channels; ++i) {
    norm.factor.push_back(static_cast<float>(static_cast<double>(at(0)[i]) /
                                             std::sqrt(static_cast<double>(at(3)[i]) + epsilon)));
  }
  return norm;
}

}  // namespace weft::ops::nn
