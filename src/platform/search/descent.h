// SPDX-License-Identifier: Apache-2.0
// The least value of a smooth function in a box.
#pragma once

#include <functional>
#include <vector>

namespace weft::platform {

// The value at `x`, and how it grows with each coordinate.
using SmoothFunction =
    std::function<double(const std::vector<double>& x, std::vector<double>* slope)>;

// From `x`, which lies within [low, high], down to a place nearby where the function is least; the
// value there. The function is asked at most `evaluations` times.
double Descend(const SmoothFunction& function, const std::vector<double>& low,
               const std::vector<double>& high, int evaluations, std::vector<double>* x);

}  // namespace weft::platform
