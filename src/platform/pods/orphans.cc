// SPDX-License-Identifier: Apache-2.0
#include "platform/pods/orphans.h"

#include <sys/wait.h>

namespace weft::platform {

void ReapOrphans(const std::function<bool(pid_t)>& is_ours) {
  while (true) {
    siginfo_t info = {};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
    if (is_ours(info.si_pid)) return;
    ::waitpid(info.si_pid, nullptr, 0);
  }
}

}  // namespace weft::platform
