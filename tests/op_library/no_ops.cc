// SPDX-License-Identifier: Apache-2.0
// Registers nothing.
#include "twice.h"

static void RegisterNothing(weft::Catalogue&) {}
WEFT_OP_LIBRARY(RegisterNothing)
