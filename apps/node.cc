// SPDX-License-Identifier: Apache-2.0
// `weft node`: this machine as a node of a cluster.
#include <memory>
#include <string>
#include <vector>

#include <signal.h>

#include "apps/command.h"
#include "apps/pods.h"
#include "apps/scheduler.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "platform/pods/node_port.h"
#include "platform/pods/pod_executor.h"
#include "platform/pods/pod_reach.h"
#include "platform/scheduling/pod_scheduler.h"
#include "platform/store/api_error.h"
#include "platform/store/kubernetes/kubernetes_store.h"

namespace weft::apps {
namespace {

struct NodeFlags {
  ClusterFlags cluster;
  std::string node = "local";
  platform::NodePortOptions node_port;
  std::string state;
  bool binds_pods = false;
  std::vector<std::string> pass_env;
};

// Until a signal comes: whoever makes the node anew knows nothing of its port.
void KeepTelling(const platform::NodePort* port, const std::string& node, const sigset_t& signals) {
  for (bool has_ended = false; !has_ended;) {
    const Status told = port == nullptr ? absl::OkStatus() : port->Tell(node);
    if (!told.ok() && !platform::IsObjectNotFound(told)) {
      WEFT_LOG_EVERY(WARNING, absl::Seconds(30))
          << "The API server does not know the way to the pods here yet: " << told.message();
    }
    const absl::Duration pause = told.ok() ? absl::Seconds(30) : absl::Milliseconds(200);
    const timespec wait = absl::ToTimespec(pause);
    has_ended = ::sigtimedwait(&signals, nullptr, &wait) > 0;
  }
}

Status RunNode(const NodeFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const auto guard, ProcessGuard::Start());
  AdoptOrphans();
  const sigset_t signals = HoldBackSignals();
  RealClock clock;
  WEFT_ASSIGN_OR_RETURN(const platform::ClusterAccess access, FindCluster(flags.cluster));
  WEFT_ASSIGN_OR_RETURN(const auto store, platform::KubernetesStore::Connect(access, &clock));
  WEFT_RETURN_IF_ERROR(Annotate(store->GetPage("/version").status(),
                                absl::StrCat("The cluster at ", access.server)));
  {
    platform::PodExecutor::Options options =
        PodOptions(store.get(), &clock, guard.get(), flags.state, flags.pass_env);
    BeThisMachine(flags.node, &options);
    options.has_heartbeat = true;
    options.volume_folder = VolumeFolder(flags.state);
    std::unique_ptr<platform::PodScheduler> scheduler;
    if (flags.binds_pods) {
      platform::PodScheduler::Options scheduling;
      scheduling.store = store.get();
      scheduling.clock = &clock;
      scheduling.scheduler_names = {"default-scheduler", kSchedulerName};
      scheduling.only_node = flags.node;
      WEFT_ASSIGN_OR_RETURN(scheduler, platform::PodScheduler::Create(std::move(scheduling)));
    }
    platform::PodExecutor executor(options);
    platform::PodReach reach(&executor, &clock, guard.get());
    std::unique_ptr<platform::NodePort> port;
    if (flags.node_port.port >= 0) {
      platform::NodePortOptions node_port = flags.node_port;
      node_port.server = access.server;
      node_port.log_folder = flags.state;
      WEFT_ASSIGN_OR_RETURN(port, platform::NodePort::Start(
                                      node_port, store.get(),
                                      [&executor](const platform::ObjectName& name) {
                                        return executor.FindPod(name);
                                      },
                                      &reach, &clock));
    }
    executor.Start();
    if (scheduler != nullptr) scheduler->Start();
    WEFT_LOG(INFO) << "This machine is node '" << flags.node << "' of " << access.server;
    KeepTelling(port.get(), flags.node, signals);
  }
  KillDescendants(guard->pid());
  return absl::OkStatus();
}

}  // namespace

void AddNode(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "node", "Join a cluster as a node that runs pods as processes of this machine");
  const auto flags = std::make_shared<NodeFlags>();  // shared with the action
  AddClusterFlags(command, &flags->cluster);
  command->add_option("--name", flags->node, "Name of the node")->capture_default_str();
  command->add_option("--state", flags->state, "Folder for the logs of pods")->required();
  command->add_flag("--bind_pods", flags->binds_pods,
                    "Take the pods that no scheduler has placed and that fit here, where the "
                    "cluster has no scheduler");
  AddPassEnvironmentFlag(command, &flags->pass_env);
  platform::NodePortOptions& port = flags->node_port;
  command
      ->add_option(
          "--kubelet_port", port.port,
          "Where the API server comes for logs, exec, attach and port-forward, usually 10250; 0 "
          "is any free one (default: nowhere)")
      ->check(CLI::Range(0, 65535));
  command->add_option("--kubelet_client_ca", port.client_authority_file,
                      "Who must have signed the API server's client certificate");
  command->add_option("--kubelet_client_name", port.client_name, "Whose that must be")
      ->capture_default_str();
  command->add_option("--address", port.address,
                      "By which the API server comes (default: that of the way to it)");
  command->add_option("--tls-cert-file", port.certificate,
                      "Certificate of that port (default: made anew)");
  command->add_option("--tls-private-key-file", port.key, "Its key");
  SetAction(command, action, [flags] { return RunNode(*flags); });
}

}  // namespace weft::apps
