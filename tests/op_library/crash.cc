// SPDX-License-Identifier: Apache-2.0
// Crashes as it is loaded.
#include <csignal>

#include "twice.h"

static const int crashed = raise(SIGSEGV);
static void RegisterNothing(weft::Catalogue&) {}
WEFT_OP_LIBRARY(RegisterNothing)
