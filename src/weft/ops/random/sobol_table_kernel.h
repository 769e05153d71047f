// SPDX-License-Identifier: Apache-2.0
// The direction numbers of Sobol sequences.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace weft::ops::random {

inline constexpr int kSobolDimensions = 1111;

// By dimension, then by binary digit of a point's number, the last one first: what that digit
// adds (by exclusive or) to the point's coordinate, in units of 2^-32. Made at the first call.
// The first numbers of each dimension are those of S. Joe and F. Y. Kuo, "Constructing Sobol
// sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30 (2008). Thread-safe.
const std::vector<std::array<uint32_t, 32>>& SobolDirections();

}  // namespace weft::ops::random
