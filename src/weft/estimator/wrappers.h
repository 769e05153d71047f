// SPDX-License-Identifier: Apache-2.0
// Layers around a layer.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// Calls `layer` on each step of [batch, time, ...], all with the same weights.
LayerRef TimeDistributed(const LayerRef& layer, const std::string& name = "");

// Calls `layer` and keeps its kernel, or its embeddings, a matrix of greatest singular value about
// 1 (Miyato et al. 2018): each training step divides the weight itself by an estimate of that
// value, after `power_iterations` steps of the power method from where the step before ended.
struct SpectralNormalizationOptions {
  int64_t power_iterations = 1;
  std::string name = {};
};
LayerRef SpectralNormalization(const LayerRef& layer,
                               const SpectralNormalizationOptions& options = {});

}  // namespace weft::estimator
