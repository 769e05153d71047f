// SPDX-License-Identifier: Apache-2.0
// Layers that move elements and compute nothing, and the masking of steps.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// [batch, ...] as [batch, the product of the rest].
LayerRef Flatten(const std::string& name = "");
// [batch] + target_shape; one of its sizes may be -1.
LayerRef Reshape(const std::vector<int64_t>& target_shape, const std::string& name = "");
// Axes in another order; `dims` count from 1, the batch stays.
LayerRef Permute(const std::vector<int64_t>& dims, const std::string& name = "");
// [batch, features] as [batch, n, features].
LayerRef RepeatVector(int64_t n, const std::string& name = "");
// Zeros around the axes between batch and channels. `padding` is one number, one for each axis, or
// two (before and after) for each axis.
LayerRef ZeroPadding1D(const Sizes& padding = 1, const std::string& name = "");
LayerRef ZeroPadding2D(const Sizes& padding = 1, const std::string& name = "");
LayerRef ZeroPadding3D(const Sizes& padding = 1, const std::string& name = "");
// The same cut away.
LayerRef Cropping1D(const Sizes& cropping = 1, const std::string& name = "");
LayerRef Cropping2D(const Sizes& cropping = 0, const std::string& name = "");
LayerRef Cropping3D(const Sizes& cropping = 1, const std::string& name = "");
// Each step or pixel as often as `size` says; images also by "bilinear" interpolation.
LayerRef UpSampling1D(int64_t size = 2, const std::string& name = "");
LayerRef UpSampling2D(const Sizes& size = 2, const std::string& interpolation = "nearest",
                      const std::string& name = "");
LayerRef UpSampling3D(const Sizes& size = 2, const std::string& name = "");
// Steps of [batch, time, features] whose features all equal `mask_value` count as not there.
LayerRef Masking(double mask_value = 0, const std::string& name = "");

}  // namespace weft::estimator
