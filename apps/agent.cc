// SPDX-License-Identifier: Apache-2.0
// `weft agent`: what this machine has, for its kubelet and its cluster.
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "absl/strings/str_split.h"

#include "apps/command.h"
#include "base/clock.h"
#include "base/log.h"
#include "platform/devices/device_agent.h"
#include "platform/object/fields.h"
#include "platform/resources/pod_needs.h"
#include "platform/store/kubernetes/kubernetes_store.h"

namespace weft::apps {
namespace {

struct AgentFlags {
  ClusterFlags cluster;
  bool tells_cluster = true;
  bool prints = false;
  std::string shared_gpus;
  std::string driver_folder;
  std::string heartbeat = "60s";
  std::string period = "5s";
  platform::DeviceAgent::Options agent;
};

StatusOr<absl::Duration> ReadPeriod(const char* flag, const std::string& text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration > absl::ZeroDuration()) return duration;
  return InvalidArgument(flag, " holds '", text, "': a time such as 5s or 1m30s is needed");
}

Status ReadFlags(const AgentFlags& flags, platform::DeviceAgent::Options* options) {
  *options = flags.agent;
  if (flags.shared_gpus == "all") {
    options->plugins.shares_all = true;
  } else {
    StatusOr<std::vector<int>> indices = platform::ParseGpuIndices(flags.shared_gpus);
    if (!indices.ok()) return Annotate(indices.status(), "--shared_gpus");
    options->plugins.shared_gpus = {indices->begin(), indices->end()};
  }
  const std::pair<std::string, std::string> folders =
      absl::StrSplit(flags.driver_folder, absl::MaxSplits(':', 1));
  options->plugins.driver_folder = folders.first;
  if (!folders.second.empty()) options->plugins.driver_mount = folders.second;
  WEFT_ASSIGN_OR_RETURN(options->heartbeat, ReadPeriod("--heartbeat", flags.heartbeat));
  return absl::OkStatus();
}

std::vector<std::string> ClaimVersions(platform::KubernetesStore* store) {
  std::vector<std::string> versions;
  const StatusOr<Json> group = store->GetPage("/apis/resource.k8s.io");
  const Json* const list = group.ok() ? group->Find("versions") : nullptr;
  if (list == nullptr) return versions;
  for (const Json& version : list->items())
    versions.push_back(platform::StringField(version, {"version"}));
  return versions;
}

Status RunAgent(const AgentFlags& flags) {
  const sigset_t signals = HoldBackSignals();
  RealClock clock;
  platform::DeviceAgent::Options options;
  WEFT_RETURN_IF_ERROR(ReadFlags(flags, &options));
  WEFT_ASSIGN_OR_RETURN(const absl::Duration period, ReadPeriod("--period", flags.period));
  if (flags.prints) {
    const Json node = platform::DescribeAsNode(
        platform::ReadMachine(options.root, options.driver_library), options.node);
    std::printf("%s\n", node.Dump(2).c_str());
    return absl::OkStatus();
  }
  options.clock = &clock;
  std::unique_ptr<platform::KubernetesStore> store;
  if (flags.tells_cluster) {
    WEFT_ASSIGN_OR_RETURN(const platform::ClusterAccess access, FindCluster(flags.cluster));
    WEFT_ASSIGN_OR_RETURN(store, platform::KubernetesStore::Connect(access, &clock));
    WEFT_RETURN_IF_ERROR(Annotate(store->GetPage("/version").status(),
                                  absl::StrCat("The cluster at ", access.server)));
    options.store = store.get();
    options.claim_versions = ClaimVersions(store.get());
  }
  WEFT_ASSIGN_OR_RETURN(const auto agent, platform::DeviceAgent::Make(std::move(options)));
  const timespec pause = absl::ToTimespec(period);
  do {
    WEFT_RETURN_IF_ERROR(agent->Step());
  } while (::sigtimedwait(&signals, nullptr, &pause) < 0);
  agent->Leave();
  return absl::OkStatus();
}

std::string DefaultNode() {
  if (const char* const name = std::getenv("NODE_NAME")) return name;
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  return host;
}

void AddPluginFlags(CLI::App* command, const std::shared_ptr<AgentFlags>& flags) {
  platform::DeviceAgent::Options& agent = flags->agent;
  agent.plugin_folder = "/var/lib/kubelet/device-plugins";
  agent.holders_socket = "/var/lib/kubelet/pod-resources/kubelet.sock";
  command
      ->add_option("--plugin_folder", agent.plugin_folder,
                   "Where the kubelet looks for device plug-ins; '': no kubelet is served, and the "
                   "node's amounts are written to the cluster")
      ->capture_default_str();
  command
      ->add_option("--holders_socket", agent.holders_socket,
                   "Where the kubelet tells which pods have which devices, for pods whose device "
                   "is lost; '': nowhere")
      ->capture_default_str();
  command->add_option("--gpu_name", agent.plugins.gpu_name, "Under which GPUs are given as a whole")
      ->capture_default_str();
  command
      ->add_option("--share_name", agent.plugins.share_name,
                   "Under which shares of GPUs are given, one for each GiB")
      ->capture_default_str();
  command
      ->add_option("--adapter_name", agent.plugins.adapter_name,
                   "Under which RDMA adapters are given")
      ->capture_default_str();
  command->add_option("--shared_gpus", flags->shared_gpus,
                      "GPUs that are given in shares: all, or numbers such as 0,2 (default: none)");
  command->add_option("--driver_folder", flags->driver_folder,
                      "HOST[:CONTAINER], a folder with the driver's libraries that containers with "
                      "GPUs get (default: none; the container runtime brings them)");
  command->add_option("--host_root", agent.plugins.host_root,
                      "How the host calls the folder of --root (default: it is the host's root)");
}

}  // namespace

void AddAgent(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "agent", "Serve the devices of this machine to its kubelet, and tell its cluster of them");
  const auto flags = std::make_shared<AgentFlags>();
  AddClusterFlags(command, &flags->cluster);
  flags->agent.node = DefaultNode();
  command
      ->add_option("--node", flags->agent.node,
                   "Name of the node (default: $NODE_NAME, the host's)")
      ->capture_default_str();
  command->add_option("--root", flags->agent.root,
                      "Where the host's /sys, /proc and /dev are (default: here)");
  command->add_option("--driver_library", flags->agent.driver_library,
                      "NVIDIA's NVML (default: libnvidia-ml.so.1)");
  command->add_flag("--tell_cluster,!--no-tell_cluster", flags->tells_cluster,
                    "Write labels, annotations and ResourceSlices (default: yes)");
  command->add_flag("--slices,!--no-slices", flags->agent.publishes_slices,
                    "ResourceSlices too, where the cluster has them (default: yes)");
  command->add_option("--heartbeat", flags->heartbeat, "Between two signs of life on the node")
      ->capture_default_str();
  command->add_option("--period", flags->period, "Between two looks at the machine")
      ->capture_default_str();
  command->add_flag("--print", flags->prints, "Print what the node would say, and end");
  AddPluginFlags(command, flags);
  SetAction(command, action, [flags] { return RunAgent(*flags); });
}

}  // namespace weft::apps
