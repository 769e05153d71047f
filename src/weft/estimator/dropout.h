// SPDX-License-Identifier: Apache-2.0
// Layers that draw while training and do nothing in inference.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

struct DropoutOptions {
  int64_t seed = 0;  // 0: after the model's seed, or anew each time
  std::string name = {};
};
// Each element 0 with probability `rate`, others scaled by 1 / (1 - rate). 0 <= rate < 1.
LayerRef Dropout(double rate, const DropoutOptions& options = {});
// Whole channels at once.
LayerRef SpatialDropout1D(double rate, const DropoutOptions& options = {});
LayerRef SpatialDropout2D(double rate, const DropoutOptions& options = {});
LayerRef SpatialDropout3D(double rate, const DropoutOptions& options = {});
// Plus normal numbers, times normal numbers of mean 1.
LayerRef GaussianNoise(double stddev, const DropoutOptions& options = {});
LayerRef GaussianDropout(double rate, const DropoutOptions& options = {});
// Elements become selu's lowest value, and all are scaled so that mean and variance stay.
LayerRef AlphaDropout(double rate, const DropoutOptions& options = {});

// x with elements dropped, wherever a layer has a dropout of its own; x itself where `rate` is 0 or
// nothing trains. `shared` are axes along which one draw counts for all.
Endpoint DropOut(LayerCall& call, Endpoint x, double rate, const Axes& shared = {},
                 int64_t seed = 0);

}  // namespace weft::estimator
