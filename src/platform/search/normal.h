// SPDX-License-Identifier: Apache-2.0
// The standard normal distribution.
#pragma once

#include <cmath>

namespace weft::platform {

inline double NormalDensity(double x) { return std::exp(-0.5 * x * x) * 0.3989422804014327; }
// How much of it lies below x.
inline double NormalShare(double x) { return 0.5 * std::erfc(-x * 0.7071067811865476); }

}  // namespace weft::platform
