// SPDX-License-Identifier: Apache-2.0
// Needs a function that nobody has.
#include "twice.h"

weft::OpSpec FromElsewhere();
static void RegisterElsewhere(weft::Catalogue& catalogue) { catalogue.Add(FromElsewhere()); }
WEFT_OP_LIBRARY(RegisterElsewhere)
