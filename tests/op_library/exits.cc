// SPDX-License-Identifier: Apache-2.0
// Ends the process as it is loaded.
#include <unistd.h>

#include "twice.h"

static void RegisterNothing(weft::Catalogue&) { _exit(7); }
WEFT_OP_LIBRARY(RegisterNothing)
