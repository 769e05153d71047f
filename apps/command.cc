// SPDX-License-Identifier: Apache-2.0
#include "apps/command.h"

#include <cstdio>
#include <utility>

#include <string.h>

#include "base/log.h"

namespace weft::apps {

void SetAction(CLI::App* command, Action* action, std::function<Status()> body) {
  command->callback([action, body = std::move(body), name = command->get_name()] {
    *action = [body, name] {
      const Status status = body();
      if (status.ok()) return 0;
      std::fprintf(stderr, "weft %s: %s\n", name.c_str(), std::string(status.message()).c_str());
      return 1;
    };
  });
}

sigset_t HoldBackSignals(std::initializer_list<int> which) {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : which) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

sigset_t HoldBackServerSignals() {
  ::signal(SIGPIPE, SIG_IGN);
  return HoldBackSignals({SIGTERM, SIGINT});
}

void WaitForServerEnd(const sigset_t& signals, const std::function<void()>& before_end) {
  int received = 0;
  ::sigwait(&signals, &received);
  // Meanwhile SIGINT ends the process at once; another SIGTERM is the same wish once more, which
  // comes of a program that passes on what its group has got too.
  if (before_end != nullptr && received == SIGTERM) {
    sigset_t hurry;
    ::sigemptyset(&hurry);
    ::sigaddset(&hurry, SIGINT);
    ::pthread_sigmask(SIG_UNBLOCK, &hurry, nullptr);
    before_end();
    // Those of meanwhile.
    const timespec now{};
    sigset_t again;
    ::sigemptyset(&again);
    ::sigaddset(&again, SIGTERM);
    while (::sigtimedwait(&again, nullptr, &now) > 0) {
    }
  }
  WEFT_LOG(INFO) << "Got " << ::strsignal(received) << ", shutting down";
  ::pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

void AddClusterFlags(CLI::App* command, ClusterFlags* flags) {
  command->add_option("--kubeconfig", flags->kubeconfig,
                      "How to reach the cluster (default: $KUBECONFIG, the pod's "
                      "own account, ~/.kube/config)");
  command->add_option("--context", flags->context,
                      "Context of the kubeconfig (default: the current one)");
}

StatusOr<platform::ClusterAccess> FindCluster(const ClusterFlags& flags) {
  return platform::FindClusterAccess(flags.kubeconfig, flags.context);
}

}  // namespace weft::apps
