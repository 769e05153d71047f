// SPDX-License-Identifier: Apache-2.0
#include "weft/server/server.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/threads.h"
#include "base/timers.h"
#include "base/waits.h"
#include "net/socket_address.h"
#include "weft/cluster/data_carrier.h"
#include "weft/collective/engine.h"
#include "weft/eager/eager_host.h"
#include "weft/inspect/cost_recorder.h"
#include "weft/master/auto_distribution.h"
#include "weft/master/local_masters.h"
#include "weft/master/master.h"
#include "weft/master/master_service.h"
#include "weft/master/step_gate.h"
#include "weft/master/task_cluster.h"
#include "weft/server/kept_variables.h"
#include "weft/server/status_page.h"
#include "weft/server/task_handover.h"
#include "weft/storage/object_files.h"
#include "weft/tensor/pool_allocator.h"
#include "weft/wire/grpc_service.h"
#include "weft/worker/collective_link.h"
#include "weft/worker/lease_service.h"
#include "weft/worker/master_watch.h"
#include "weft/worker/membership_link.h"
#include "weft/worker/membership_service.h"
#include "weft/worker/step_host.h"
#include "weft/worker/worker.h"
#include "weft/worker/worker_service.h"

namespace weft::server {
namespace {

constexpr int kCallThreads = 8;
// Calls that may wait for other tasks get threads of their own, so that steps go on beside them.
constexpr int kSetupThreads = 32;
// Look-ups of other tasks' names may take seconds.
constexpr int kDialThreads = 2;
// Sessions of another task's master are dropped when it has not answered for so long.
constexpr absl::Duration kMasterPatience = absl::Minutes(10);
// Who shall form a group may be about to start.
constexpr absl::Duration kFindPatience = absl::Seconds(30);
// Of tasks that may not be there, looked for again and again.
constexpr absl::Duration kSeekPatience = absl::Seconds(2);
constexpr absl::Duration kProbePatience = absl::Seconds(5);

// Tasks of one cluster greet each other with it: a task of another cluster is not let in by
// mistake.
std::string ClusterToken(const cluster::ClusterSpec& cluster, bool come_and_go) {
  std::string token = "weft";
  const bool has_ps = cluster.tasks().lower_bound({"ps", 0}) != cluster.tasks().end() &&
                      cluster.tasks().lower_bound({"ps", 0})->first.job == "ps";
  for (const auto& [task, address] : cluster.tasks()) {
    // Where workers come and go each knows itself and the parameter servers.
    if (!come_and_go || !has_ps || task.job == "ps") absl::StrAppend(&token, " ", task.ToString());
  }
  constexpr size_t kMostBytes = 512;
  if (token.size() > kMostBytes) token.resize(kMostBytes);
  return token;
}

WaitWatchdog::Options WatchdogOptions(absl::Duration report_after) {
  WaitWatchdog::Options options;
  options.threshold = report_after;
  options.period = std::clamp(report_after / 2, absl::Milliseconds(50), options.period);
  return options;
}

class TaskServer final : public Server {
 public:
  explicit TaskServer(const ServerOptions& options)
      : task_(options.task),
        device_task_{.job = options.task.job, .replica = 0, .task = options.task.index},
        waits_(&clock_),
        watchdog_(&waits_, WatchdogOptions(options.report_waits_after), nullptr),
        directory_(options.cluster, options.task, &waits_, options.identity),
        session_tasks_(&directory_, &waits_, options.identity),
        hand_over_within_(options.hand_over_within),
        master_patience_(std::min(options.session_lease, kMasterPatience)),
        host_(device_task_.TaskName(), &compute_),
        dial_("weft-dial", kDialThreads),
        compute_("weft-compute", options.num_threads),
        setup_("weft-setup", kSetupThreads),
        calls_("weft-calls", std::max(kCallThreads, compute_.num_threads())) {}

  ~TaskServer() override { Shutdown(absl::ZeroDuration()); }

  Status Init(const ServerOptions& options) {
    WEFT_ASSIGN_OR_RETURN(const std::string at, options.cluster.AddressOf(options.task));
    const std::string& own = options.take_over.empty() ? at : options.take_over;
    WEFT_ASSIGN_OR_RETURN(const SocketAddress listed, ParseSocketAddress(own));
    host_name_ = listed.host;
    if (options.membership) directory_.LetClustersDiffer();
    if (options.memory_limit > 0) SetHostMemoryLimit(options.memory_limit);
    const std::string bind = BindHost(options.bind);
    if (options.kept != nullptr && !options.take_over.empty() && listed.port == 0) {
      return InvalidArgument(
          "--take_over of a supervised server needs a port, so that it is found "
          "again after a kill, got ",
          own);
    }
    const bool is_wide = !IsLoopbackHost(bind);
    const std::string where = SocketAddress{bind, listed.port}.ToString();
    if (is_wide) WEFT_RETURN_IF_ERROR(CheckWidePort(options, where));
    WEFT_RETURN_IF_ERROR(OpenFiles(options.root, is_wide));
    metrics_.GetGauge("weft_insecure", "1 where whoever reaches the port may run graphs")
        .Set(is_wide && !options.identity.has_value() ? 1 : 0);
    WEFT_RETURN_IF_ERROR(StartStatusPage(options.status_port));
    WEFT_RETURN_IF_ERROR(MakeWorker(options));
    WEFT_RETURN_IF_ERROR(StartDataPlane(options, bind));
    MakeMaster(options);
    MakeHandover(options, at, bind);
    wire::MethodTable methods;
    master::AddMasterMethods({.master = &*master_, .graphs = &graphs_, .metrics = &step_metrics_},
                             &methods);
    const auto tell = [this](wire::GetStatusExtension* status) { handover_->Tell(status); };
    worker::AddWorkerMethods(&*worker_, plane_.get(), self_, &directory_, &session_tasks_, tell,
                             &methods);
    master::AddGateMethods(&gate_, &directory_, &methods);
    handover_->AddMethods(&methods);
    if (members_) worker::AddMembershipMethods(&*members_, &*collectives_, &methods);
    WEFT_RETURN_IF_ERROR(MakeLeases(options));
    leases_->AddMethods(&methods);
    eager_.emplace(&*master_, &*worker_, &directory_, options.identity);
    eager_->AddMethods(&methods);
    WEFT_ASSIGN_OR_RETURN(grpc_, wire::GrpcServer::Start(
                                     where, methods, &calls_, &setup_,
                                     options.identity.has_value() ? &*options.identity : nullptr));
    watchdog_.Start();
    if (!options.take_over.empty()) {
      WEFT_RETURN_IF_ERROR(TakeOver(options));
      // Where the name leads here by itself nothing is to be waited for.
      if (options.take_over_from.empty() || options.take_over_from == at)
        handover_->ServeAtListed(std::move(methods));
    }
    ScheduleSweep();
    local_.emplace(target(), &*master_, &step_metrics_);
    if (members_) members_->Start(self_, plane_.get());
    if (status_page_) status_page_->SetReady();
    WEFT_LOG(INFO) << task_.ToString() << " serves at " << target();
    return absl::OkStatus();
  }

  int port() const override { return grpc_->port(); }
  int status_port() const override { return status_page_ ? status_page_->port() : -1; }
  std::string target() const override {
    return absl::StrCat("grpc://", SocketAddress{host_name_, port()}.ToString());
  }

  std::vector<membership::Member> Members() override {
    return members_ ? members_->Members() : std::vector<membership::Member>();
  }

  bool HasGroupChanged(int32_t group_key) override {
    const collective::Engine::View view = collectives_->ViewOf(group_key);
    return view.epoch != 0 && view.changed;
  }

  void HandOver() override {
    handover_->AwaitTaker(hand_over_within_, [this] { return master_watch_->FindsOne(); });
  }

  void Shutdown(absl::Duration grace) override {
    if (shut_down_.exchange(true)) return;
    if (status_page_) status_page_->SetStopping();
    if (leases_) leases_->Drain();
    stopping_.Cancel(Cancelled("The server is shutting down"));
    StopSweeps();
    if (eager_) eager_->Shutdown();
    if (master_) master_->Shutdown();
    local_.reset();
    if (grpc_) grpc_->Shutdown(grace);
    if (handover_) handover_->Shutdown(grace);
    if (members_) members_->Stop();
    if (link_) link_->Stop();
    if (plane_) plane_->Shutdown();
  }

 private:
  std::string BindHost(const std::string& asked) const {
    if (!asked.empty()) return asked;
    return IsLoopbackHost(host_name_) ? host_name_ : "::";
  }

  // Of a port that others reach.
  Status CheckWidePort(const ServerOptions& options, const std::string& where) const {
    if (options.identity.has_value()) {
      WEFT_LOG(INFO) << "Others than this host's own reach " << where
                     << " with the secret of the job only, " << options.identity->name;
      return absl::OkStatus();
    }
    if (!options.insecure) {
      return FailedPrecondition(
          task_.ToString(), " at ", where,
          " would run the graphs of whoever reaches it: give all tasks of the job one secret "
          "(`weft secret FOLDER` makes it, --task_tls FOLDER or WEFT_TASK_TLS names it), or say "
          "--insecure (WEFT_INSECURE=1) inside a private network");
    }
    WEFT_LOG(WARNING) << "Listening at " << where
                      << " WITHOUT ENCRYPTION OR PASSWORD: whoever reaches this port can run any "
                         "graph here. Keep it inside a private network.";
    return absl::OkStatus();
  }

  Status OpenFiles(const std::string& asked, bool is_wide) {
    if (asked.empty() && !is_wide) {
      files_ = std::make_unique<storage::ObjectFileSystem>(std::make_unique<RealFileSystem>());
      return absl::OkStatus();
    }
    const std::string root = asked.empty() ? std::filesystem::current_path().string() : asked;
    WEFT_LOG(INFO) << "File ops of graphs stay under " << root
                   << (asked.empty() ? ", the working directory: --file_root says otherwise" : "");
    WEFT_ASSIGN_OR_RETURN(files_, RootedFileSystem::Create(root));
    // Stores are reached with this process's credentials: for a program's own graphs, and where it
    // is said.
    const char* const stores = std::getenv("WEFT_OBJECT_STORES");
    if (root == "/" || (stores != nullptr && std::strcmp(stores, "1") == 0))
      files_ = std::make_unique<storage::ObjectFileSystem>(std::move(files_));
    return absl::OkStatus();
  }

  Status MakeWorker(const ServerOptions& options) {
    worker::WorkerOptions worker{.task = device_task_,
                                 .catalogue = options.catalogue,
                                 .factory = options.devices,
                                 .pool = &compute_,
                                 .files = files_.get(),
                                 .waits = &waits_,
                                 .collectives = nullptr,
                                 .clock = &clock_,
                                 .single_threaded = compute_.num_threads() == 1,
                                 .ran = {},
                                 .updated = StalenessMetric(&metrics_, &clock_)};
    if (options.devices == nullptr) return InvalidArgument("A server needs devices");
    WEFT_ASSIGN_OR_RETURN(devices_, options.devices->Make(device_task_, &compute_));
    if (devices_.empty()) return InvalidArgument("A server needs a device, its factory made none");
    for (const auto& device : devices_) worker.devices.push_back(device.get());
    if (options.kept != nullptr) KeepVariables(options.kept, &worker);
    MakeCollectives(options);
    worker.collectives = &*collectives_;
    for (const auto& device : devices_) OfferCollectives(device.get(), &*collectives_);
    worker_.emplace(std::move(worker), &host_);
    master_watch_.emplace(&*worker_, &clock_, master_patience_, [this](const std::string& master) {
      return worker::ProbeMaster(master, &directory_, session_tasks_, kProbePatience, &stopping_);
    });
    return absl::OkStatus();
  }

  void KeepVariables(KeptVariables* kept, worker::WorkerOptions* worker) {
    kept->Keep(devices_);
    worker->ran = [kept] { kept->Commit(); };
    const KeptVariables::Counts& counts = kept->counts();
    metrics_.GetGauge("weft_starts", "How often the supervisor started a process of this task")
        .Set(static_cast<double>(counts.starts));
    metrics_.GetGauge("weft_restored_bytes", "Of variables that an earlier process left")
        .Set(static_cast<double>(counts.restored_bytes));
    if (counts.restored == 0) return;
    WEFT_LOG(INFO) << task_.ToString() << " goes on with " << counts.restored << " variables of "
                   << counts.restored_bytes << " bytes that an earlier process left; "
                   << counts.put_back << " rows of an update that was cut off were put back";
  }

  // What cannot be read costs time and nothing else.
  static collective::AlgorithmTable ReadTable(const std::string& path) {
    if (path.empty()) return {};
    RealFileSystem files;
    const StatusOr<std::string> text = ReadFile(files, path);
    StatusOr<collective::AlgorithmTable> table =
        text.ok() ? collective::AlgorithmTable::Parse(*text) : text.status();
    if (table.ok()) return *std::move(table);
    WEFT_LOG(WARNING) << "All-reduces choose their algorithms by a rule, as the table " << path
                      << " cannot be read: " << table.status().message();
    return {};
  }

  // The first task of the cluster tells the members of a group who they are.
  void MakeCollectives(const ServerOptions& options) {
    const auto find = [this](const std::string& task) { return Find(task); };
    link_.emplace(device_task_.TaskName(), devices_.front()->attributes().incarnation, find,
                  &setup_, &compute_);
    collective::EngineOptions engine{.pool = &compute_,
                                     .table = ReadTable(options.collective_table),
                                     .open_groups = options.membership,
                                     .boards = options.share_memory && options.kept == nullptr,
                                     .patience = collective::kPatience};
    for (const auto& [task, address] : options.cluster.tasks())
      engine.tasks.push_back(task.DeviceTask());
    if (!engine.tasks.empty()) engine.leader = engine.tasks.front();
    collectives_.emplace(std::move(engine), &*link_);
    if (!options.membership) return;
    std::vector<std::string> others;
    for (const auto& [task, address] : options.cluster.tasks()) others.push_back(task.DeviceTask());
    worker::MembershipLink::Listener listener;
    listener.lost = [this](const std::string& task, const Status& why) {
      host_.TaskLost(task, why);
      leases_->TaskLost(task);
    };
    listener.left = [this](const std::string& task) { leases_->TaskLost(task); };
    listener.ranks = [this](const std::vector<std::string>& ranks) {
      collectives_->SetRanks(ranks);
    };
    const auto seek = [this](const std::string& task) { return Find(task, kSeekPatience); };
    members_.emplace(std::move(others), seek, std::move(listener), &setup_, &clock_);
    link_->OnBeRank([this] { members_->BeRank(); });
  }

  StatusOr<cluster::TaskAddress> Find(const std::string& task,
                                      absl::Duration patience = kFindPatience) {
    WEFT_ASSIGN_OR_RETURN(const DeviceName name, DeviceName::Parse(task));
    if (!name.job || !name.task) return InvalidArgument("Not a task: ", task);
    WEFT_ASSIGN_OR_RETURN(
        const std::vector<cluster::TaskStatus> answers,
        directory_.GetStatus({cluster::TaskId{*name.job, *name.task}}, patience, &stopping_));
    if (answers.empty()) return Unavailable("No way to ", task, " is known");
    if (answers.front().data.address.empty())
      return Unimplemented("A collective group has weft's servers only, or TensorFlow's own only: ",
                           task, ", who would form it, is TensorFlow's own");
    return answers.front().data;
  }

  Status StartDataPlane(const ServerOptions& options, const std::string& bind) {
    cluster::DataPlaneOptions data{
        .task = worker_->task(),
        .incarnation = devices_.front()->attributes().incarnation,
        .token = ClusterToken(options.cluster, options.membership),
        .bind =
            SocketAddress{bind == "localhost" ? "127.0.0.1" : bind, options.data_port}.ToString(),
        // What others still read could not be told from what is free after a kill.
        .share_memory = options.share_memory && options.kept == nullptr,
        .lost_after = options.lost_after,
        .metrics = &data_metrics_};
    if (options.identity.has_value()) {
      WEFT_ASSIGN_OR_RETURN(data.tls, MakeJobTls(*options.identity));
      tls_ = data.tls;
    }
    WEFT_ASSIGN_OR_RETURN(const cluster::CarrierChoice carrier,
                          cluster::ChooseCarrier(options.transport, data.tls.has_value()));
    data.use_ucx = carrier.is_ucx;
    WEFT_LOG(INFO) << carrier.why;
    StatusOr<std::unique_ptr<cluster::DataPlane>> plane =
        cluster::DataPlane::Start(data, &host_, &dial_);
    if (!plane.ok()) {
      return Annotate(plane.status(),
                      absl::StrCat("For tensors of other tasks, --data_port ", options.data_port));
    }
    plane_ = *std::move(plane);
    host_.Attach(&*worker_, plane_.get(), &*link_, members_ ? &*members_ : nullptr);
    WEFT_ASSIGN_OR_RETURN(const SocketAddress bound, ParseSocketAddress(plane_->address()));
    // Others reach it where they reach the task.
    self_ = {
        worker_->task(),
        SocketAddress{host_name_ == "localhost" ? "127.0.0.1" : host_name_, bound.port}.ToString(),
        data.incarnation};
    if (!options.data_address.empty()) {
      WEFT_RETURN_IF_ERROR(Annotate(ParseSocketAddress(options.data_address).status(),
                                    "Where others reach the data port"));
      self_.address = options.data_address;
    }
    link_->Attach(&*collectives_, plane_.get(), self_.address);
    return absl::OkStatus();
  }

  // The first parameter server keeps them, else the first task.
  Status MakeLeases(const ServerOptions& options) {
    const auto& tasks = options.cluster.tasks();
    auto keeper = tasks.lower_bound({"ps", 0});
    if (keeper == tasks.end() || keeper->first.job != "ps") keeper = tasks.begin();
    const bool is_self = keeper->first == options.task;
    WEFT_ASSIGN_OR_RETURN(leases_,
                          worker::LeaseService::Make({.task = device_task_.TaskName(),
                                                      .incarnation = self_.incarnation,
                                                      .keeper = is_self ? "" : keeper->second,
                                                      .folder = is_self ? options.lease_folder : "",
                                                      .identity = options.identity},
                                                     &lease_files_, &clock_, &stopping_));
    if (!members_) return absl::OkStatus();
    leases_->SetLiving([this] {
      std::set<std::string> living;
      for (const membership::Member& member : members_->Members()) {
        if (member.is_alive()) living.insert(member.name);
      }
      return living;
    });
    return absl::OkStatus();
  }

  void MakeHandover(const ServerOptions& options, const std::string& listed,
                    const std::string& bind) {
    handover::HandoverSourceOptions source{
        .stream = {.task = worker_->task(),
                   .incarnation = self_.incarnation,
                   .token = ClusterToken(options.cluster, options.membership),
                   .tls = tls_},
        .bind = bind == "localhost" ? "127.0.0.1" : bind,
        .host = host_name_ == "localhost" ? "127.0.0.1" : host_name_,
        .devices = worker_->options().devices,
        .worker = &*worker_,
        .directory = &directory_,
        .setup = &setup_,
        .timers = &timers_,
        .stopping = &stopping_,
        .may_leave = [this] { return MayLeave(); },
        .leaves = [this] { return leases_->Leave(); },
        .stays = [this] { leases_->Stay(); },
        .left =
            [this, kept = options.kept](const std::string& address) {
              leases_->GoTo(address);
              Left(kept);
            }};
    handover_.emplace(TaskHandoverOptions{.source = std::move(source),
                                          .listed = listed,
                                          .from = options.take_over_from,
                                          .identity = options.identity,
                                          .metrics = &metrics_,
                                          .timers = &timers_,
                                          .calls = &calls_,
                                          .setup = &setup_});
  }

  // What is here and cannot go to another process.
  Status MayLeave() {
    const auto refuse = [this](const char* what) {
      return FailedPrecondition(task_.ToString(), " cannot go to another process: ", what);
    };
    if (master_->num_sessions() > 0) return refuse("clients have sessions at its own master");
    if (eager_->num_contexts() > 0) return refuse("programs have eager contexts here");
    if (worker_->has_isolated_sessions())
      return refuse("sessions have variables of their own here");
    return absl::OkStatus();
  }

  // The task is another process's now. Gigabytes take a while to give back, and steps wait.
  void Left(KeptVariables* kept) {
    if (kept == nullptr) return setup_.Schedule([this] { DropTask(nullptr); });
    DropTask(kept);
  }

  void DropTask(KeptVariables* kept) {
    if (members_) members_->Stop();
    for (const auto& [master, incarnation] : worker_->masters())
      worker_->DropSessionsOf(master, incarnation);
    for (const auto& device : devices_) device->resources().CleanupAll();
    if (kept != nullptr) kept->Commit();  // a process after this one finds nothing
  }

  Status TakeOver(const ServerOptions& options) {
    // Its supervisor has started it again: the task has been here.
    if (options.kept != nullptr && options.kept->counts().starts > 1) return absl::OkStatus();
    // A name that leads to both processes may bring masters here before the variables are.
    worker_->Refuse(Unavailable(task_.ToString(), " is just being taken over: try again"));
    const auto have_all = [this, kept = options.kept](const std::string& queues) {
      if (kept != nullptr) kept->Commit();
      worker_->Refuse(absl::OkStatus());
      return leases_->Take(queues);
    };
    const auto is_known = [this] { return !worker_->masters().empty(); };
    const std::string address = SocketAddress{host_name_, port()}.ToString();
    const Status taken = handover_->TakeOver(address, have_all, is_known);
    if (taken.ok()) worker_->Refuse(absl::OkStatus());  // also where the task begins anew
    return Annotate(taken, "--take_over");
  }

  void MakeMaster(const ServerOptions& options) {
    cluster_ = std::make_unique<master::TaskCluster>(
        master::SessionEnvironment{.worker = &*worker_,
                                   .host = &host_,
                                   .directory = &directory_,
                                   .cluster = members_ ? nullptr : &directory_.cluster(),
                                   .gate = &gate_,
                                   .setup = &setup_,
                                   .self = self_});
    master::MasterOptions master{.lease = options.session_lease};
    if (!options.cost_file.empty()) {
      master.cost_file = options.cluster.tasks().size() > 1
                             ? inspect::CostPathOfTask(options.cost_file, task_.job, task_.index)
                             : options.cost_file;
    }
    master.default_config.set_allow_soft_placement(options.soft_placement);
    master::SetDistribution(options.distribution, &master.default_config);
    master_.emplace(std::move(master), cluster_.get(), &timers_);
  }

  // Steps whose tensors came but which never started are forgotten, and so are sessions of masters
  // that are gone.
  void ScheduleSweep() {
    absl::MutexLock lock(&sweep_mutex_);
    if (stopping_.IsCancelled()) return;
    sweep_ = timers_.Schedule(
        std::clamp(master_patience_ / 4, absl::Milliseconds(100), absl::Minutes(1)), [this] {
          worker_->Sweep();
          // One at a time: it waits for masters to answer.
          if (!checking_masters_.exchange(true)) {
            setup_.Schedule([this] {
              master_watch_->Check();
              session_tasks_.ForgetUnless(
                  [this](const std::string& handle) { return worker_->HasSession(handle); });
              if (eager_) eager_->Sweep();
              checking_masters_ = false;
            });
          }
          ScheduleSweep();
        });
  }

  // None runs when this returns.
  void StopSweeps() {
    sweep_mutex_.Lock();
    const TimerQueue::Id last = std::exchange(sweep_, 0);
    sweep_mutex_.Unlock();
    if (last != 0) timers_.Cancel(last);
  }

  Status StartStatusPage(int port) {
    if (port < 0) return absl::OkStatus();
    const auto update = [this](MetricRegistry* metrics) {
      TellWork(worker_->counts(), master_->num_sessions(), metrics);
    };
    WEFT_ASSIGN_OR_RETURN(status_page_, StatusPage::Start(port, &metrics_, &waits_, update));
    WEFT_LOG(INFO) << "Health, metrics and waits at http://127.0.0.1:" << status_page_->port()
                   << "/metrics";
    return absl::OkStatus();
  }

  // In the order in which they need each other: the last goes first. The threads end before all
  // that they may still touch: who is told of a step's end goes on while the thread that tells it
  // lets go of the step, and with it perhaps of its session.
  const cluster::TaskId task_;
  const DeviceName device_task_;
  std::string host_name_;
  cluster::TaskAddress self_;
  RealClock clock_;
  WaitRegistry waits_;
  WaitWatchdog watchdog_;
  MetricRegistry metrics_;
  master::StepMetrics step_metrics_{&metrics_};
  cluster::DataMetrics data_metrics_{&metrics_};
  master::GraphCache graphs_;
  std::unique_ptr<FileSystem> files_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::optional<worker::CollectiveLink> link_;
  std::optional<collective::Engine> collectives_;
  std::optional<worker::MembershipLink> members_;
  std::optional<worker::Worker> worker_;
  cluster::TaskDirectory directory_;
  cluster::StepTasks session_tasks_;
  const absl::Duration hand_over_within_;
  const absl::Duration master_patience_;
  Cancellation stopping_;
  RealFileSystem lease_files_;
  std::unique_ptr<worker::LeaseService> leases_;
  std::atomic<bool> checking_masters_{false};
  absl::Mutex sweep_mutex_;
  TimerQueue::Id sweep_ ABSL_GUARDED_BY(sweep_mutex_) = 0;
  worker::StepHost host_;
  std::unique_ptr<cluster::DataPlane> plane_;
  std::optional<JobTls> tls_;  // between tasks; none: in the clear
  std::optional<worker::MasterWatch> master_watch_;
  master::StepGate gate_{task_.DeviceTask(), &waits_, &timers_, &setup_};
  TimerQueue timers_;
  std::unique_ptr<master::ClusterAccess> cluster_;
  std::optional<master::Master> master_;
  std::optional<eager::EagerHost> eager_;
  std::optional<TaskHandover> handover_;
  ThreadPool dial_;
  ComputePool compute_;
  ThreadPool setup_;
  ThreadPool calls_;
  std::unique_ptr<wire::GrpcServer> grpc_;
  std::optional<master::LocalMasterRegistration> local_;
  std::unique_ptr<StatusPage> status_page_;
  std::atomic<bool> shut_down_{false};
};

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::Start(const ServerOptions& options) {
  if (options.catalogue == nullptr) return InvalidArgument("A server needs a catalogue of ops");
  WEFT_RETURN_IF_ERROR(options.catalogue->status());
  WEFT_RETURN_IF_ERROR(master::DistributionByName(options.distribution).status());
  auto server = std::make_unique<TaskServer>(options);
  WEFT_RETURN_IF_ERROR(server->Init(options));
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace weft::server
