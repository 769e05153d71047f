// SPDX-License-Identifier: Apache-2.0
// Errors are values here, but libraries throw, and so does memory that is not there.
#pragma once

#include "base/status.h"

namespace weft {

// In a catch block: what was thrown, as a status. ResourceExhausted where memory was short,
// Internal for any other exception.
Status StatusOfException();

}  // namespace weft
