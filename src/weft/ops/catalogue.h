// SPDX-License-Identifier: Apache-2.0
// All ops of weft.
#pragma once

#include "weft/kernel/op_spec.h"

namespace weft {

// Adds every op of this room to `catalogue` (generated from the files in the sub-folders).
void RegisterOps(Catalogue& catalogue);

// The process's catalogue, filled on first use. Thread-safe; never destroyed.
const Catalogue& StandardCatalogue();

}  // namespace weft
