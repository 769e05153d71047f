// SPDX-License-Identifier: Apache-2.0
// Its op has no kernel.
#include "twice.h"

static void RegisterIdle(weft::Catalogue& catalogue) { catalogue.Add(Twice("Idle")); }
WEFT_OP_LIBRARY(RegisterIdle)
