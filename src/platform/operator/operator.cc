// SPDX-License-Identifier: Apache-2.0
#include "platform/operator/operator.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/start_pages.h"
#include "base/threads.h"
#include "platform/jobs/dry_run.h"
#include "platform/jobs/pod_group.h"
#include "platform/jobs/tfjob_controller.h"
#include "platform/model_servers/model_server_kind.h"
#include "platform/operator/cluster_logs.h"
#include "platform/reconcile/metered_store.h"
#include "platform/store/api_error.h"
#include "platform/store/kubernetes/kubernetes_store.h"
#include "platform/tuning/katib_server.h"
#include "platform/tuning/suggestion_services.h"
#include "platform/tuning/tuning_controllers.h"

namespace weft::platform {
namespace {

constexpr absl::Duration kGather = absl::Milliseconds(100);
constexpr absl::Duration kLongestLook = absl::Minutes(1);

// One controller a kind of job, and those of experiments and model servers where they are wanted.
class Controllers {
 public:
  Controllers(TfJobController::Options options, int threads,
              const std::optional<TuningControllers::Options>& tuning,
              const std::optional<Controller::Options>& model_servers) {
    for (const ResourceType* const type : {&TfJobs(), &Tensorflows()}) {
      options.type = type;
      all_.push_back(std::make_unique<TfJobController>(options));
    }
    for (const auto& controller : all_) controller->Start(threads);
    if (model_servers.has_value()) {
      Controller::Options own = *model_servers;
      own.store = options.store;
      model_servers_ = std::make_unique<Controller>(
          own, std::make_unique<ModelServerKind>(own.store, FetchServerPage));
      model_servers_->Start(threads);
    }
    if (!tuning.has_value()) return;
    TuningControllers::Options own = *tuning;
    own.frame.store = options.store;
    tuning_.emplace(std::move(own));
    tuning_->Start(threads);
  }
  bool HaveSynced() const {
    if (tuning_.has_value() && !tuning_->HasSynced()) return false;
    if (model_servers_ != nullptr && !model_servers_->HasSynced()) return false;
    return std::all_of(all_.begin(), all_.end(),
                       [](const auto& controller) { return controller->HasSynced(); });
  }

 private:
  std::vector<std::unique_ptr<TfJobController>> all_;
  std::unique_ptr<Controller> model_servers_;
  std::optional<TuningControllers> tuning_;
};

// What runs now, if anything; for the health port. Thread-safe.
class Running {
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
  void SetWebhook(const std::shared_ptr<Webhook>& webhook) {
    absl::MutexLock lock(&mutex_);
    webhook_ = webhook;
  }
  // Who waits for the lease is ready too.
  bool IsReady() const {
    absl::MutexLock lock(&mutex_);
    const std::shared_ptr<Controllers> controllers = controllers_.lock();
    const std::shared_ptr<Webhook> webhook = webhook_.lock();
    return has_begun_ && (controllers == nullptr || controllers->HaveSynced()) &&
           (webhook == nullptr || webhook->IsTold());
  }

 private:
  mutable absl::Mutex mutex_;
  bool has_begun_ ABSL_GUARDED_BY(mutex_) = false;
  std::weak_ptr<Controllers> controllers_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<Webhook> webhook_ ABSL_GUARDED_BY(mutex_);
};

// Null without a port.
StatusOr<std::shared_ptr<Webhook>> StartChecks(WebhookOptions options, const Clock* clock,
                                               ObjectStore* store) {
  if (options.address.port == 0) return nullptr;
  if (options.folder.empty()) {
    return InvalidArgument(
        "--webhook_port needs --webhook_folder: where tls.crt and tls.key are, "
        "or shall be made");
  }
  options.store = store;
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<Webhook> webhook, Webhook::Start(options, clock));
  WEFT_LOG(INFO) << "Jobs are checked at port " << webhook->port()
                 << (options.configuration.empty()
                         ? absl::StrCat("; to tell the cluster: kubectl apply -f ",
                                        JoinPath(options.folder, "webhook.yaml"))
                         : absl::StrCat(", as the configuration '", options.configuration,
                                        "' tells the cluster"));
  return webhook;
}

// Before watches that only say that they broke.
void WarnOfWhatIsMissing(const OperatorOptions& options, ObjectStore* store) {
  const auto look = [&](const ResourceType& type, const std::string& definition,
                        const char* rights) {
    ListOptions one;
    one.namespace_name = options.namespace_name;
    one.limit = 1;
    const Status listed = store->List(type, one).status();
    const bool is_missing = IsObjectNotFound(listed);
    if (!is_missing && HttpCodeOf(listed) != 403) return;
    WEFT_LOG(WARNING) << (is_missing ? "The cluster does not know the kind "
                                     : "This account may not list the kind ")
                      << type.kind << " (" << type.Id() << ") yet, and no job "
                      << "that needs it is looked at: "
                      << (is_missing ? definition : absl::StrCat("kubectl apply -f ", rights));
  };
  const char* const rights =
      options.namespace_name.empty() ? "deploy/rbac/operator.yaml" : "deploy/namespaced/role.yaml";
  for (const ResourceType* const type : {&TfJobs(), &Tensorflows()}) {
    look(*type, absl::StrCat("kubectl apply -f deploy/crds/", type->plural, ".yaml"), rights);
  }
  for (const ResourceType* const type : {&Pods(), &Services()}) look(*type, "", rights);
  if (options.gang_scheduler.empty()) return;
  look(PodGroupType(options.gang_scheduler),
       absl::StrCat("install the scheduler '", options.gang_scheduler,
                    "', or start without --gang_scheduler_name"),
       "deploy/rbac/gang.yaml");
}

TuningControllers::Options TuningOptions(const TfJobController::Options& options,
                                         KubernetesStore* cluster,
                                         const SuggestionServices* services) {
  TuningControllers::Options tuning;
  tuning.services = services;
  tuning.frame = FrameOptions(options);
  tuning.read_output = ReadsClusterLogs(cluster);
  return tuning;
}

StatusOr<TfJobController::Options> JobOptions(const OperatorOptions& options, ObjectStore* store,
                                              const Clock* clock, ThreadPool* pool,
                                              MetricRegistry* metrics) {
  TfJobController::Options jobs;
  jobs.store = store;
  jobs.clock = clock;
  jobs.pool = pool;
  jobs.metrics = metrics;
  jobs.namespace_name = options.namespace_name;
  jobs.gather = kGather;
  WEFT_ASSIGN_OR_RETURN(jobs.job_selector, Selector::ParseLabels(options.job_selector));
  jobs.adopts_orphans = options.adopts_orphans;
  jobs.gang_scheduler = options.gang_scheduler;
  jobs.cluster_domain = options.cluster_domain;
  jobs.has_network = true;
  jobs.prices = options.prices;
  return jobs;
}

StatusOr<std::unique_ptr<KubernetesStore>> Connect(const OperatorOptions& options,
                                                   const Clock* clock) {
  WEFT_ASSIGN_OR_RETURN(auto cluster, KubernetesStore::Connect(options.access, clock));
  WEFT_RETURN_IF_ERROR(Annotate(cluster->GetPage("/version").status(),
                                absl::StrCat("The cluster at ", options.access.server)));
  return cluster;
}

std::string HostOf(const ClusterAccess& access) {
  return std::string(absl::StripPrefix(access.server, "https://"));
}

}  // namespace

Status RunOperator(const OperatorOptions& options, const std::function<void()>& wait) {
  RealClock clock;
  MetricRegistry metrics;
  Running running;
  WEFT_RETURN_IF_ERROR(LeaderElector::CheckTimes(options.election.lease_duration,
                                                 options.election.renew_deadline,
                                                 options.election.retry_period));
  WEFT_ASSIGN_OR_RETURN(const auto metrics_port, ServeMetrics(options.metrics, clock, &metrics));
  WEFT_ASSIGN_OR_RETURN(const auto health_port, ServeHealth(options.health, clock, [&running] {
                          return running.IsReady();
                        }));
  WEFT_ASSIGN_OR_RETURN(const auto cluster, Connect(options, &clock));
  MeteredStore store(cluster.get(), &clock, HostOf(options.access), &metrics);
  WEFT_ASSIGN_OR_RETURN(const auto webhook, StartChecks(options.webhook, &clock, &store));
  if (webhook != nullptr) running.SetWebhook(webhook);
  WarnOfWhatIsMissing(options, &store);
  ReleaseStartPages();
  ThreadPool pool("calls", options.parallel_calls);
  WEFT_ASSIGN_OR_RETURN(TfJobController::Options jobs,
                        JobOptions(options, &store, &clock, &pool, &metrics));
  if (options.log_period > absl::ZeroDuration()) {
    jobs.log_period = options.log_period;
    jobs.read_log = [raw = cluster.get()](const ObjectName& pod) { return ReadProgress(raw, pod); };
  }
  std::optional<TuningControllers::Options> tuning;
  WEFT_ASSIGN_OR_RETURN(const auto services,
                        SuggestionServices::Create(options.suggestion_services));
  if (options.has_experiments) tuning = TuningOptions(jobs, cluster.get(), services.get());
  std::optional<Controller::Options> model_servers;
  if (options.has_model_servers) model_servers = FrameOptions(jobs);
  const auto start = [&] {
    auto controllers = std::make_shared<Controllers>(jobs, options.threads, tuning, model_servers);
    running.Set(controllers);
    WEFT_LOG(INFO) << "The operator cares for the jobs of "
                   << (options.namespace_name.empty() ? "all namespaces" : options.namespace_name)
                   << " at " << options.access.server;
    return controllers;
  };
  WEFT_ASSIGN_OR_RETURN(const auto katib, AnswerKatib(options.katib_address, &store));
  if (!options.elects) {
    const auto controllers = start();
    running.Begin();
    wait();
    return absl::OkStatus();
  }
  LeaderElector::Options election = options.election;
  election.store = &store;
  election.clock = &clock;
  election.metrics = &metrics;
  LeaderElector elector(election);
  FencedStore fenced(&store, &elector);
  jobs.store = &fenced;
  running.Begin();
  LeaderLoop loop(&elector, election.retry_period, start);
  wait();
  return absl::OkStatus();
}

StatusOr<int> TellOperatorChanges(const OperatorOptions& options,
                                  const std::function<void(const std::string& line)>& tell) {
  RealClock clock;
  MetricRegistry metrics;
  WEFT_ASSIGN_OR_RETURN(const auto cluster, Connect(options, &clock));
  MeteredStore store(cluster.get(), &clock, HostOf(options.access), &metrics);
  WarnOfWhatIsMissing(options, &store);
  ThreadPool pool("calls", options.parallel_calls);
  WEFT_ASSIGN_OR_RETURN(const TfJobController::Options jobs,
                        JobOptions(options, &store, &clock, &pool, &metrics));
  return TellChanges(jobs, kLongestLook, tell);
}

}  // namespace weft::platform
