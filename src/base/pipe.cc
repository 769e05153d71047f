// SPDX-License-Identifier: Apache-2.0
#include "base/pipe.h"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace weft {

StatusOr<Pipe> MakePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return ErrnoStatus(errno, "make", "a pipe");
  return Pipe{OwnedFd(fds[0]), OwnedFd(fds[1])};
}

}  // namespace weft
