// SPDX-License-Identifier: Apache-2.0
// `weft operator`: the controllers on a cluster. `weft node`: this machine as one of its nodes.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "apps/command.h"
#include "apps/pods.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/subprocess.h"
#include "base/threads.h"
#include "platform/jobs/admission.h"
#include "platform/jobs/tfjob_controller.h"
#include "platform/pods/pod_executor.h"
#include "platform/store/api_error.h"
#include "platform/store/kubernetes/kubeconfig.h"
#include "platform/store/kubernetes/kubernetes_store.h"

namespace weft::apps {
namespace {

struct Flags {
  std::string kubeconfig;
  std::string context;
  std::string namespace_name;
  std::string node = "local";
  std::string state;
  bool binds_pods = false;
  int threads = 4;
  int parallel_calls = 32;
  std::string gang_scheduler;
  int status_port = -1;
  platform::WebhookOptions webhook = {.address = {"0.0.0.0", 0}};
};

sigset_t BlockSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Null without a port.
StatusOr<std::unique_ptr<HttpServer>> StartStatusPages(int port, const MetricRegistry& metrics) {
  if (port < 0) return nullptr;
  HttpServer::Options options;
  options.address.port = port;
  const auto healthz = [](const HttpRequest&) { return HttpResponse{.body = "ok\n"}; };
  const auto text = [&metrics](const HttpRequest&) {
    return HttpResponse{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                        .body = metrics.PrometheusText()};
  };
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> server,
                        HttpServer::Start(options, {{"/healthz", healthz}, {"/metrics", text}}));
  WEFT_LOG(INFO) << "Health and metrics: http://127.0.0.1:" << server->port() << "/metrics";
  return server;
}

// Null without a port.
StatusOr<std::unique_ptr<HttpServer>> StartChecks(const platform::WebhookOptions& options,
                                                  const Clock& clock) {
  if (options.address.port == 0) return nullptr;
  if (options.folder.empty()) {
    return InvalidArgument(
        "--webhook_port needs --webhook_folder: where tls.crt and tls.key are, "
        "or shall be made");
  }
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> server, platform::StartWebhook(options, clock));
  WEFT_LOG(INFO) << "Jobs are checked at port " << server->port()
                 << "; to tell the cluster: kubectl apply -f "
                 << JoinPath(options.folder, "webhook.yaml");
  return server;
}

void TellMissingKinds(platform::ObjectStore* store, const std::string& namespace_name) {
  for (const platform::ResourceType* const type : {&platform::TfJobs(), &platform::Tensorflows()}) {
    platform::ListOptions one;
    one.namespace_name = namespace_name;
    one.limit = 1;
    if (!platform::IsObjectNotFound(store->List(*type, one).status())) continue;
    WEFT_LOG(WARNING) << "The cluster does not know the kind " << type->kind
                      << " yet: kubectl apply -f deploy/crds/" << type->plural << ".yaml";
  }
}

Status RunOperator(const Flags& flags) {
  const sigset_t signals = BlockSignals();
  RealClock clock;
  WEFT_ASSIGN_OR_RETURN(const platform::ClusterAccess access,
                        platform::FindClusterAccess(flags.kubeconfig, flags.context));
  WEFT_ASSIGN_OR_RETURN(const auto store, platform::KubernetesStore::Connect(access, &clock));
  WEFT_RETURN_IF_ERROR(Annotate(store->GetPage("/version").status(),
                                absl::StrCat("The cluster at ", access.server)));
  ThreadPool pool("calls", flags.parallel_calls);
  platform::TfJobController::Options options;
  options.store = store.get();
  options.clock = &clock;
  options.namespace_name = flags.namespace_name;
  options.pool = &pool;
  options.gang_scheduler = flags.gang_scheduler;
  if (const char* const domain = std::getenv("CUSTOM_CLUSTER_DOMAIN"))
    options.cluster_domain = domain;
  MetricRegistry metrics;
  options.metrics = &metrics;
  WEFT_ASSIGN_OR_RETURN(const auto status_pages, StartStatusPages(flags.status_port, metrics));
  WEFT_ASSIGN_OR_RETURN(const auto webhook, StartChecks(flags.webhook, clock));
  platform::TfJobController jobs(options);
  options.type = &platform::Tensorflows();
  platform::TfJobController compact_jobs(options);
  TellMissingKinds(store.get(), flags.namespace_name);
  jobs.Start(flags.threads);
  compact_jobs.Start(flags.threads);
  WEFT_LOG(INFO) << "The operator cares for the jobs of "
                 << (flags.namespace_name.empty() ? "all namespaces" : flags.namespace_name)
                 << " at " << access.server;
  int signal = 0;
  ::sigwait(&signals, &signal);
  return absl::OkStatus();
}

Status RunNode(const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const auto guard, ProcessGuard::Start());
  AdoptOrphans();
  const sigset_t signals = BlockSignals();
  RealClock clock;
  WEFT_ASSIGN_OR_RETURN(const platform::ClusterAccess access,
                        platform::FindClusterAccess(flags.kubeconfig, flags.context));
  WEFT_ASSIGN_OR_RETURN(const auto store, platform::KubernetesStore::Connect(access, &clock));
  WEFT_RETURN_IF_ERROR(Annotate(store->GetPage("/version").status(),
                                absl::StrCat("The cluster at ", access.server)));
  {
    platform::PodExecutor::Options options =
        PodOptions(store.get(), &clock, guard.get(), flags.state);
    options.node_name = flags.node;
    options.binds_pods = flags.binds_pods;
    options.has_heartbeat = true;
    platform::PodExecutor executor(options);
    executor.Start();
    WEFT_LOG(INFO) << "This machine is node '" << flags.node << "' of " << access.server;
    int signal = 0;
    ::sigwait(&signals, &signal);
  }
  KillDescendants(guard->pid());
  return absl::OkStatus();
}

std::shared_ptr<Flags> AddShared(CLI::App* command) {
  const auto flags = std::make_shared<Flags>();
  command->add_option("--kubeconfig", flags->kubeconfig,
                      "How to reach the cluster (default: $KUBECONFIG, the pod's "
                      "own account, ~/.kube/config)");
  command->add_option("--context", flags->context,
                      "Context of the kubeconfig (default: the current one)");
  return flags;
}

void SetAction(CLI::App* command, Action* action, const std::shared_ptr<Flags>& flags,
               Status (*run)(const Flags& flags)) {
  const std::string name = command->get_name();
  command->callback([action, flags, run, name] {
    *action = [flags, run, name] {
      const Status status = run(*flags);
      if (status.ok()) return 0;
      std::fprintf(stderr, "weft %s: %s\n", name.c_str(), std::string(status.message()).c_str());
      return 1;
    };
  });
}

}  // namespace

void AddOperator(CLI::App& app, Action* action) {
  CLI::App* const command =
      app.add_subcommand("operator", "Run the controllers of jobs on a cluster");
  const auto flags = AddShared(command);
  command->add_option("-n,--namespace", flags->namespace_name, "Care for this namespace alone");
  command->add_option("--controller_threads", flags->threads, "Jobs that are looked at together")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  command
      ->add_option("--parallel_calls", flags->parallel_calls,
                   "Pods and services that are made together")
      ->capture_default_str()
      ->check(CLI::Range(1, 256));
  command->add_option("--gang_scheduler_name", flags->gang_scheduler,
                      "Admit the pods of a job together: volcano, or a scheduler with the "
                      "coscheduling plugin");
  command
      ->add_option("--status_port", flags->status_port,
                   "Loopback port of /healthz and /metrics; 0: any free one, which the log names")
      ->check(CLI::Range(0, 65535));
  command
      ->add_option("--webhook_port", flags->webhook.address.port,
                   "Refuse wrong jobs before they are kept, as a validating webhook on this port")
      ->check(CLI::Range(0, 65535));
  command->add_option("--webhook_folder", flags->webhook.folder,
                      "Its tls.crt and tls.key; made there when they are missing, with a "
                      "webhook.yaml for the cluster");
  command->add_option("--webhook_host", flags->webhook.host, "By which the API server reaches it")
      ->capture_default_str();
  command->add_option("--webhook_service", flags->webhook.service,
                      "NAMESPACE/NAME of the service that has this host name, on a cluster");
  SetAction(command, action, flags, &RunOperator);
}

void AddNode(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "node", "Join a cluster as a node that runs pods as processes of this machine");
  const auto flags = AddShared(command);
  command->add_option("--name", flags->node, "Name of the node")->capture_default_str();
  command->add_option("--state", flags->state, "Folder for the logs of pods")->required();
  command->add_flag("--bind_pods", flags->binds_pods,
                    "Take every pod that no scheduler has placed");
  SetAction(command, action, flags, &RunNode);
}

}  // namespace weft::apps
