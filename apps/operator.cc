// SPDX-License-Identifier: Apache-2.0
// `weft operator`: the controllers on a cluster. `weft node`: this machine as one of its nodes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <signal.h>
#include <unistd.h>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

#include "apps/command.h"
#include "apps/operator_ports.h"
#include "apps/pods.h"
#include "apps/scheduler.h"
#include "apps/suggestion.h"
#include "apps/trial_output.h"
#include "base/cancellation.h"
#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/start_pages.h"
#include "base/subprocess.h"
#include "base/threads.h"
#include "net/certificate.h"
#include "platform/jobs/dry_run.h"
#include "platform/jobs/pod_group.h"
#include "platform/jobs/tfjob_controller.h"
#include "platform/jobs/webhook.h"
#include "platform/pods/node_port.h"
#include "platform/pods/pod_executor.h"
#include "platform/pods/pod_reach.h"
#include "platform/pods/process_report.h"
#include "platform/reconcile/leader_election.h"
#include "platform/reconcile/metered_store.h"
#include "platform/scheduling/pod_scheduler.h"
#include "platform/store/api_error.h"
#include "platform/store/kubernetes/kubernetes_store.h"
#include "platform/tuning/tuning_controllers.h"

namespace weft::apps {
namespace {

constexpr absl::Duration kGather = absl::Milliseconds(100);
constexpr int kLogLines = 50;
constexpr size_t kMostLogBytes = 64 << 10;

struct OperatorFlags {
  ClusterFlags cluster;
  std::string namespace_name;
  std::string node = "local";
  platform::NodePortOptions node_port;
  std::string state;
  std::string job_selector;
  bool adopts_orphans = false;
  bool is_dry_run = false;
  bool binds_pods = false;
  bool has_experiments = false;
  KatibFlags katib;
  std::vector<std::string> pass_env;
  int threads = 4;
  int parallel_calls = 32;
  std::string gang_scheduler;
  std::string log_period;      // empty: logs are not read
  std::optional<bool> elects;  // default: inside a cluster
  std::string lease_name = "weft-operator";
  std::string lease_namespace;  // default: that of the way to the cluster
  std::string lease_duration = "15s";
  std::string renew_deadline = "10s";
  std::string retry_period = "2s";
  PortFlags metrics;
  platform::WebhookOptions webhook = {.address = {"0.0.0.0", 0}};
  std::string webhook_validity = "2160h";
  std::string health_address = "127.0.0.1:0";  // else as that of metrics
};

sigset_t BlockSignals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&signals, signal);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// One controller a kind of job, and those of experiments where they are wanted.
class Controllers {
 public:
  Controllers(platform::TfJobController::Options options, int threads,
              const std::optional<platform::TuningControllers::Options>& tuning) {
    for (const platform::ResourceType* const type :
         {&platform::TfJobs(), &platform::Tensorflows()}) {
      options.type = type;
      all_.push_back(std::make_unique<platform::TfJobController>(options));
    }
    for (const auto& controller : all_) controller->Start(threads);
    if (!tuning.has_value()) return;
    platform::TuningControllers::Options own = *tuning;
    own.frame.store = options.store;
    tuning_.emplace(std::move(own));
    tuning_->Start(threads);
  }
  bool HaveSynced() const {
    if (tuning_.has_value() && !tuning_->HasSynced()) return false;
    return std::all_of(all_.begin(), all_.end(),
                       [](const auto& controller) { return controller->HasSynced(); });
  }

 private:
  std::vector<std::unique_ptr<platform::TfJobController>> all_;
  std::optional<platform::TuningControllers> tuning_;
};

// Those that run now, if any; for the health port.
class Current {
 public:
  void Set(const std::shared_ptr<Controllers>& controllers) {
    absl::MutexLock lock(&mutex_);
    controllers_ = controllers;
  }
  // The cluster has answered.
  void Begin() {
    absl::MutexLock lock(&mutex_);
    has_begun_ = true;
  }
  void SetWebhook(const std::shared_ptr<platform::Webhook>& webhook) {
    absl::MutexLock lock(&mutex_);
    webhook_ = webhook;
  }
  // Who waits for the lease is ready too.
  bool IsReady() const {
    absl::MutexLock lock(&mutex_);
    const std::shared_ptr<Controllers> controllers = controllers_.lock();
    const std::shared_ptr<platform::Webhook> webhook = webhook_.lock();
    return has_begun_ && (controllers == nullptr || controllers->HaveSynced()) &&
           (webhook == nullptr || webhook->IsTold());
  }

 private:
  mutable absl::Mutex mutex_;
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::weak_ptr<Controllers> controllers_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<platform::Webhook> webhook_ ABSL_GUARDED_BY(mutex_);
};

StatusOr<absl::Duration> ParseTime(const char* flag, const std::string& text) {
  absl::Duration duration;
  if (absl::ParseDuration(text, &duration) && duration > absl::ZeroDuration()) return duration;
  return InvalidArgument(flag, " holds '", text, "': a time such as 15s or 1m30s is needed");
}

StatusOr<platform::LeaderElector::Options> ElectionOptions(const OperatorFlags& flags,
                                                           const platform::ClusterAccess& access) {
  platform::LeaderElector::Options options;
  WEFT_ASSIGN_OR_RETURN(options.lease_duration,
                        ParseTime("--leader-elect-lease-duration", flags.lease_duration));
  WEFT_ASSIGN_OR_RETURN(options.renew_deadline,
                        ParseTime("--leader-elect-renew-deadline", flags.renew_deadline));
  WEFT_ASSIGN_OR_RETURN(options.retry_period,
                        ParseTime("--leader-elect-retry-period", flags.retry_period));
  WEFT_RETURN_IF_ERROR(platform::LeaderElector::CheckTimes(
      options.lease_duration, options.renew_deadline, options.retry_period));
  options.name = flags.lease_name;
  options.namespace_name =
      flags.lease_namespace.empty() ? access.namespace_name : flags.lease_namespace;
  char host[256] = "";
  ::gethostname(host, sizeof(host) - 1);
  options.identity = absl::StrCat(host, "_", RandomHex(8));
  return options;
}

// Null without a port.
StatusOr<std::shared_ptr<platform::Webhook>> StartChecks(const OperatorFlags& flags,
                                                         const Clock* clock,
                                                         platform::ObjectStore* store) {
  platform::WebhookOptions options = flags.webhook;
  if (options.address.port == 0) return nullptr;
  if (options.folder.empty()) {
    return InvalidArgument(
        "--webhook_port needs --webhook_folder: where tls.crt and tls.key are, "
        "or shall be made");
  }
  WEFT_ASSIGN_OR_RETURN(options.validity, ParseTime("--webhook_validity", flags.webhook_validity));
  options.store = store;
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<platform::Webhook> webhook,
                        platform::Webhook::Start(options, clock));
  WEFT_LOG(INFO) << "Jobs are checked at port " << webhook->port()
                 << (options.configuration.empty()
                         ? absl::StrCat("; to tell the cluster: kubectl apply -f ",
                                        JoinPath(options.folder, "webhook.yaml"))
                         : absl::StrCat(", as the configuration '", options.configuration,
                                        "' tells the cluster"));
  return webhook;
}

// Before watches that only say that they broke.
void WarnOfWhatIsMissing(const OperatorFlags& flags, platform::ObjectStore* store) {
  const auto look = [&](const platform::ResourceType& type, const std::string& definition,
                        const char* rights) {
    platform::ListOptions one;
    one.namespace_name = flags.namespace_name;
    one.limit = 1;
    const Status listed = store->List(type, one).status();
    const bool is_missing = platform::IsObjectNotFound(listed);
    if (!is_missing && platform::HttpCodeOf(listed) != 403) return;
    WEFT_LOG(WARNING) << (is_missing ? "The cluster does not know the kind "
                                     : "This account may not list the kind ")
                      << type.kind << " (" << type.Id() << ") yet, and no job "
                      << "that needs it is looked at: "
                      << (is_missing ? definition : absl::StrCat("kubectl apply -f ", rights));
  };
  const char* const rights =
      flags.namespace_name.empty() ? "deploy/rbac/operator.yaml" : "deploy/namespaced/role.yaml";
  for (const platform::ResourceType* const type : {&platform::TfJobs(), &platform::Tensorflows()}) {
    look(*type, absl::StrCat("kubectl apply -f deploy/crds/", type->plural, ".yaml"), rights);
  }
  for (const platform::ResourceType* const type : {&platform::Pods(), &platform::Services()}) {
    look(*type, "", rights);
  }
  if (flags.gang_scheduler.empty()) return;
  look(platform::PodGroupType(flags.gang_scheduler),
       absl::StrCat("install the scheduler '", flags.gang_scheduler,
                    "', or start without --gang_scheduler_name"),
       "deploy/rbac/gang.yaml");
}

// The last line of the task's container that tells a step.
StatusOr<Json> ReadProgress(platform::KubernetesStore* cluster, const platform::ObjectName& pod) {
  platform::LogOptions options;
  options.container = "tensorflow";
  options.tail_lines = kLogLines;
  std::string text;
  Cancellation cancellation;
  const Status status = cluster->StreamLog(
      pod, options,
      [&text](absl::string_view piece) {
        if (text.size() + piece.size() > kMostLogBytes) {
          return ResourceExhausted("its last lines are longer than ", kMostLogBytes, " bytes");
        }
        text.append(piece.data(), piece.size());
        return absl::OkStatus();
      },
      &cancellation);
  WEFT_RETURN_IF_ERROR(status);
  Json latest;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (auto progress = platform::ParseProgressLine(line)) latest = *std::move(progress);
  }
  return latest;
}

platform::TuningControllers::Options TuningOptions(
    const platform::TfJobController::Options& options, platform::KubernetesStore* cluster,
    const platform::SuggestionServices* services) {
  platform::TuningControllers::Options tuning;
  tuning.services = services;
  tuning.frame.store = options.store;
  tuning.frame.clock = options.clock;
  tuning.frame.namespace_name = options.namespace_name;
  tuning.frame.metrics = options.metrics;
  tuning.frame.pool = options.pool;
  tuning.frame.gather = options.gather;
  tuning.read_output = ReadsClusterLogs(cluster);
  return tuning;
}

Status ShowChanges(const platform::TfJobController::Options& options) {
  WEFT_ASSIGN_OR_RETURN(const int count,
                        platform::TellChanges(options, absl::Minutes(1), [](const auto& line) {
                          std::printf("would %s\n", line.c_str());
                        }));
  if (count == 0) std::printf("nothing would change\n");
  return absl::OkStatus();
}

Status RunOperator(const OperatorFlags& flags) {
  const sigset_t signals = BlockSignals();
  RealClock clock;
  WEFT_ASSIGN_OR_RETURN(const platform::ClusterAccess access, FindCluster(flags.cluster));
  WEFT_ASSIGN_OR_RETURN(platform::LeaderElector::Options election, ElectionOptions(flags, access));
  MetricRegistry metrics;
  Current current;
  WEFT_ASSIGN_OR_RETURN(const auto metrics_port, ServeMetrics(flags.metrics, clock, &metrics));
  PortFlags health = flags.metrics;
  health.address = flags.health_address;
  WEFT_ASSIGN_OR_RETURN(const auto health_port,
                        ServeHealth(health, clock, [&current] { return current.IsReady(); }));
  WEFT_ASSIGN_OR_RETURN(const auto cluster, platform::KubernetesStore::Connect(access, &clock));
  WEFT_RETURN_IF_ERROR(Annotate(cluster->GetPage("/version").status(),
                                absl::StrCat("The cluster at ", access.server)));
  platform::MeteredStore store(cluster.get(), &clock,
                               std::string(absl::StripPrefix(access.server, "https://")), &metrics);
  WEFT_ASSIGN_OR_RETURN(const auto webhook, StartChecks(flags, &clock, &store));
  if (webhook != nullptr) current.SetWebhook(webhook);
  WarnOfWhatIsMissing(flags, &store);
  ReleaseStartPages();
  ThreadPool pool("calls", flags.parallel_calls);
  platform::TfJobController::Options options;
  options.store = &store;
  options.clock = &clock;
  options.namespace_name = flags.namespace_name;
  options.pool = &pool;
  options.gather = kGather;
  WEFT_ASSIGN_OR_RETURN(options.job_selector, platform::Selector::ParseLabels(flags.job_selector));
  options.adopts_orphans = flags.adopts_orphans;
  options.gang_scheduler = flags.gang_scheduler;
  options.has_network = true;
  if (!flags.log_period.empty()) {
    WEFT_ASSIGN_OR_RETURN(options.log_period, ParseTime("--progress_from_logs", flags.log_period));
    options.read_log = [raw = cluster.get()](const platform::ObjectName& pod) {
      return ReadProgress(raw, pod);
    };
  }
  options.metrics = &metrics;
  if (const char* const domain = std::getenv("CUSTOM_CLUSTER_DOMAIN"))
    options.cluster_domain = domain;
  if (flags.is_dry_run) return ShowChanges(options);
  std::optional<platform::TuningControllers::Options> tuning;
  WEFT_ASSIGN_OR_RETURN(const auto services,
                        platform::SuggestionServices::Create(flags.katib.services));
  if (flags.has_experiments) tuning = TuningOptions(options, cluster.get(), services.get());
  const auto start = [&] {
    auto controllers = std::make_shared<Controllers>(options, flags.threads, tuning);
    current.Set(controllers);
    WEFT_LOG(INFO) << "The operator cares for the jobs of "
                   << (flags.namespace_name.empty() ? "all namespaces" : flags.namespace_name)
                   << " at " << access.server;
    return controllers;
  };
  WEFT_ASSIGN_OR_RETURN(const auto katib, StartKatibServer(flags.katib, &store));
  int signal = 0;
  if (!flags.elects.value_or(access.is_in_cluster)) {
    const auto controllers = start();
    current.Begin();
    ::sigwait(&signals, &signal);
    return absl::OkStatus();
  }
  election.store = &store;
  election.clock = &clock;
  election.metrics = &metrics;
  platform::LeaderElector elector(election);
  platform::FencedStore fenced(&store, &elector);
  options.store = &fenced;
  current.Begin();
  platform::LeaderLoop loop(&elector, election.retry_period, start);
  ::sigwait(&signals, &signal);
  return absl::OkStatus();
}

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

Status RunNode(const OperatorFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(const auto guard, ProcessGuard::Start());
  AdoptOrphans();
  const sigset_t signals = BlockSignals();
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

std::shared_ptr<OperatorFlags> AddOperatorFlags(CLI::App* command) {
  const auto flags = std::make_shared<OperatorFlags>();
  AddClusterFlags(command, &flags->cluster);
  return flags;
}

void AddElection(CLI::App* command, const std::shared_ptr<OperatorFlags>& flags) {
  command->add_flag("--leader-elect,!--no-leader-elect", flags->elects,
                    "Of several operators let one act (default: inside a cluster)");
  command
      ->add_option("--leader-elect-lease-duration", flags->lease_duration,
                   "After this without a renewal another one leads")
      ->capture_default_str();
  command
      ->add_option("--leader-elect-renew-deadline", flags->renew_deadline,
                   "After this without a renewal the leader begins nothing new")
      ->capture_default_str();
  command->add_option("--leader-elect-retry-period", flags->retry_period, "Between two tries")
      ->capture_default_str();
  command->add_option("--leader-elect-resource-name", flags->lease_name, "Name of the Lease")
      ->capture_default_str();
  command->add_option("--leader-elect-resource-namespace", flags->lease_namespace,
                      "Namespace of the Lease (default: that of the account or context)");
}

void AddPorts(CLI::App* command, const std::shared_ptr<OperatorFlags>& flags) {
  flags->metrics.address = "127.0.0.1:0";
  command
      ->add_option("--metrics-bind-address", flags->metrics.address,
                   "Where /metrics is; port 0 is any free one, which the log names; '0': nowhere")
      ->capture_default_str();
  command
      ->add_option("--health-probe-bind-address", flags->health_address,
                   "The same for /healthz and /readyz")
      ->capture_default_str();
  command->add_option("--metrics-token-file", flags->metrics.token_file,
                      "Who reads the metrics must say the token in this file");
  command->add_option("--tls-cert-file", flags->metrics.certificate,
                      "Certificate of ports that others can reach (default: made anew)");
  command->add_option("--tls-private-key-file", flags->metrics.key, "Its key");
  command->add_option("--allowed-host", flags->metrics.hosts,
                      "A name by which those ports may be asked for");
}

}  // namespace

void AddOperator(CLI::App& app, Action* action) {
  CLI::App* const command =
      app.add_subcommand("operator", "Run the controllers of jobs on a cluster");
  const auto flags = AddOperatorFlags(command);
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
  command->add_option("--progress_from_logs", flags->log_period,
                      "Read the progress of jobs from the log of their first task, this often "
                      "(15s); needs deploy/rbac/logs.yaml. Default: never");
  command->add_option("-l,--job_selector", flags->job_selector,
                      "Care for the jobs with these labels alone (operator=weft,team!=vision); "
                      "others are somebody else's");
  command->add_flag("--experiments", flags->has_experiments,
                    "Care for Experiments and their Trials too; needs deploy/rbac/tuning.yaml");
  AddKatibFlags(command, &flags->katib);
  command->add_flag("--adopt_orphans", flags->adopts_orphans,
                    "Take over pods and services that belong to nobody and have the labels of a "
                    "job, as another operator leaves them behind; needs deploy/rbac/adoption.yaml");
  command->add_flag("--dry_run", flags->is_dry_run,
                    "Look at all jobs once, print what would change, change nothing");
  AddElection(command, flags);
  AddPorts(command, flags);
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
  command->add_option("--webhook_configuration", flags->webhook.configuration,
                      "The ValidatingWebhookConfiguration of the cluster that shall trust its "
                      "certificate; it is kept up to date (default: DIR/webhook.yaml is written)");
  command
      ->add_option("--webhook_validity", flags->webhook_validity,
                   "Life of a certificate that is made; another takes its place in time")
      ->capture_default_str();
  SetAction(command, action, [flags] { return RunOperator(*flags); });
}

void AddNode(CLI::App& app, Action* action) {
  CLI::App* const command = app.add_subcommand(
      "node", "Join a cluster as a node that runs pods as processes of this machine");
  const auto flags = AddOperatorFlags(command);
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
