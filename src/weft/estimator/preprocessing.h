// SPDX-License-Identifier: Apache-2.0
// Layers that make numbers fit for a model.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// x * scale + offset.
LayerRef Rescaling(double scale, double offset = 0, const std::string& name = "");
// (x - mean) / sqrt(variance) along the last axis; both hold one number for all, or one each.
LayerRef Normalization(const std::vector<double>& mean, const std::vector<double>& variance,
                       const std::string& name = "");

}  // namespace weft::estimator
