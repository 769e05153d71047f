// SPDX-License-Identifier: Apache-2.0
// Throws an exception as it is asked for its ops.
#include <string>

#include "twice.h"

static void RegisterThrowing(weft::Catalogue&) { std::stoi("no number"); }
WEFT_OP_LIBRARY(RegisterThrowing)
