// SPDX-License-Identifier: Apache-2.0
#include "apps/command.h"

#include <cstdio>
#include <utility>

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

sigset_t HoldBackSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
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
