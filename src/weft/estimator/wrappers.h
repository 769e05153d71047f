// SPDX-License-Identifier: Apache-2.0
// Layers around a layer.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// Calls `layer` on each step of [batch, time, ...], all with the same weights.
LayerRef TimeDistributed(const LayerRef& layer, const std::string& name = "");

}  // namespace weft::estimator
