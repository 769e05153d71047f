// SPDX-License-Identifier: Apache-2.0
// Layers of several inputs that become one, element by element, joined, or as products.
#pragma once

#include <string>

#include "weft/estimator/layer.h"

namespace weft::estimator {

// Inputs of shapes that broadcast.
LayerRef Add(const std::string& name = "");
LayerRef Subtract(const std::string& name = "");  // of two
LayerRef Multiply(const std::string& name = "");
LayerRef Average(const std::string& name = "");
LayerRef Maximum(const std::string& name = "");
LayerRef Minimum(const std::string& name = "");
// Joined along `axis`.
LayerRef Concatenate(int64_t axis = -1, const std::string& name = "");
// Sums of products of two inputs along `axes`: one for both, or one for each.
struct DotOptions {
  bool normalize = false;  // of the inputs scaled to length 1
  std::string name = {};
};
LayerRef Dot(const Sizes& axes, const DotOptions& options = {});

}  // namespace weft::estimator
