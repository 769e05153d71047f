// SPDX-License-Identifier: Apache-2.0
// How near to the exact result kernels of this process compute.
#pragma once

namespace weft {

// Exact: each sum of products is computed as such. Otherwise, as at the start, algorithms that
// round more in exchange for speed may be taken: Winograd's for convolutions.
void SetExactMath(bool exact);
bool UsesExactMath();

}  // namespace weft
