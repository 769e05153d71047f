// SPDX-License-Identifier: Apache-2.0
// Layers around a layer.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// Calls `layer` on each step of [batch, time, ...], all with the same weights.
LayerRef TimeDistributed(const LayerRef& layer, const std::string& name = "");

// `layer`, whose kernel is divided by its largest singular value at each training step; an estimate
// gets better by `power_iterations` each time (Miyato et al. 2018).
LayerRef SpectralNormalization(const LayerRef& layer, int64_t power_iterations = 1,
                               const std::string& name = "");

}  // namespace weft::estimator
