// SPDX-License-Identifier: Apache-2.0
// A pipe whose ends close themselves.
#pragma once

#include "base/posix_file.h"
#include "base/status.h"

namespace weft {

struct Pipe {
  OwnedFd read;
  OwnedFd write;
};

// Closed in programs that a child becomes.
StatusOr<Pipe> MakePipe();

}  // namespace weft
