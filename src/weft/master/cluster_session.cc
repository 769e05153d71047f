// SPDX-License-Identifier: Apache-2.0
#include "weft/master/cluster_session.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"

#include "weft/compile/partition.h"
#include "weft/compile/remote_calls.h"
#include "weft/graph/graph_proto.h"
#include "weft/graph/import.h"
#include "weft/kernel/session_tensor.h"
#include "weft/master/step_run.h"
#include "weft/wire/device_proto.h"
#include "weft/worker/part_options.h"

namespace weft::master {
namespace {

// For the answer of a task that was lost: long enough to dial it again.
constexpr absl::Duration kProbePatience = absl::Seconds(2);
// Before the key of a signature whose step is replicated.
constexpr char kReplicated[] = "replicated;";

}  // namespace

// A signature as first seen, with what runs it.
struct ClusterSession::Executable {
  explicit Executable(const SessionEnvironment& session_environment)
      : environment(session_environment) {}
  // One that was registered anew lets the tasks drop it once its last step has ended; all others go
  // with their session.
  ~Executable() {
    if (!retired) return;
    for (const auto& [task, graph] : registered)
      environment.directory->DeregisterGraph(task, parts.session, graph);
    if (parts.local) environment.worker->DeregisterGraph(*parts.local).IgnoreError();
  }
  bool RunsAt(const std::string& task) const {
    return std::any_of(parts.remote.begin(), parts.remote.end(),
                       [&](const StepParts::Remote& remote) { return remote.task == task; });
  }

  const SessionEnvironment& environment;
  StepParts parts;
  std::vector<PartialShape> feed_shapes;  // what placeholders demand, by feed
  std::vector<PartialShape> made_for;     // the feeds' own, where it is for these alone
  std::vector<std::pair<cluster::TaskId, std::string>> registered;
  std::atomic<bool> retired = false;
};

ClusterSession::ClusterSession(std::string handle, tensorflow::ConfigProto config,
                               SessionEnvironment environment, DistributionWish distribution)
    : handle_(std::move(handle)),
      config_(std::move(config)),
      environment_(std::move(environment)),
      client_device_([this] {
        DeviceName device = environment_.worker->options().task;
        device.type = "CPU";
        device.index = 0;
        return device;
      }()),
      graph_(&environment_.worker->options().catalogue->ops(), client_device_.ToString()),
      distribution_(distribution, &environment_.worker->options().catalogue->ops(),
                    environment_.directory->self(), OtherTasks()) {
  environment_.gate->Watch(
      this, [this](const std::string& task) { Suspect({task}, Aborted("The task has moved")); });
}

ClusterSession::~ClusterSession() {
  environment_.gate->Unwatch(this);
  environment_.worker->DeleteSession(handle_).IgnoreError();
  for (const auto& [name, task] : tasks_)
    environment_.directory->DeleteWorkerSession(task.id, handle_);
}

Status ClusterSession::Open() {
  return environment_.worker->CreateSession(
      {.handle = handle_, .isolate = config_.isolate_session_state()});
}

std::vector<cluster::TaskId> ClusterSession::OtherTasks() const {
  return environment_.directory->OthersMatching(
      {config_.device_filters().begin(), config_.device_filters().end()});
}

std::vector<cluster::TaskId> ClusterSession::TasksNamedBy(const GraphDef& graph) const {
  std::set<std::string> devices;
  for (const NodeDef& node : graph.nodes) devices.insert(node.device);
  for (const FunctionDef& function : graph.functions) {
    for (const NodeDef& node : function.nodes) devices.insert(node.device);
  }
  compile::AddCallTargets(graph, &devices);
  DeviceName here = client_device_;
  here.type.reset();
  here.index.reset();
  std::vector<cluster::TaskId> named;
  for (const cluster::TaskId& task : OtherTasks()) {
    DeviceName name{.job = task.job, .replica = 0, .task = task.index};
    for (const std::string& device : devices) {
      StatusOr<DeviceName> wish = DeviceName::Parse(device);
      if (!wish.ok()) continue;
      wish->type.reset();
      wish->index.reset();
      // "/task:1" without a job means this task if it can; "/cpu:0" always does.
      if ((!wish->job && wish->Matches(here)) || !wish->Matches(name)) continue;
      named.push_back(task);
      break;
    }
  }
  return named;
}

Status ClusterSession::EnsureTasks(const std::vector<cluster::TaskId>& tasks,
                                   Cancellation* cancellation) {
  std::vector<cluster::TaskId> fresh;
  {
    absl::MutexLock lock(&mutex_);
    for (const cluster::TaskId& task : tasks) {
      if (!tasks_.contains(task.DeviceTask())) fresh.push_back(task);
    }
  }
  if (fresh.empty()) return absl::OkStatus();
  const StatusOr<std::vector<cluster::TaskStatus>> found =
      environment_.directory->GetStatus(fresh, environment_.patience, cancellation);
  if (absl::IsUnavailable(found.status()) && config_.operation_timeout_in_ms() > 0) {
    // Clients repeat what is UNAVAILABLE: beyond the time that they gave.
    return DeadlineExceeded(found.status().message());
  }
  WEFT_RETURN_IF_ERROR(found.status());
  for (const cluster::TaskStatus& task : *found) WEFT_RETURN_IF_ERROR(OpenTask(task, cancellation));
  return absl::OkStatus();
}

Status ClusterSession::OpenTask(cluster::TaskStatus task, Cancellation* cancellation) {
  tensorflow::CreateWorkerSessionRequest request;
  request.set_session_handle(handle_);
  request.set_isolate_session_state(config_.isolate_session_state());
  const bool is_stranger =
      environment_.own_tasks != nullptr && environment_.cluster != nullptr &&
      !environment_.cluster->CheckSameTasks(task.id.ToString(), task.cluster).ok();
  // TensorFlow's own tasks end all sessions of another process that has this one's name.
  if (!is_stranger || !task.data.address.empty()) {
    request.set_master_task(environment_.worker->task());
    request.set_master_incarnation(static_cast<int64_t>(environment_.self.incarnation));
  }
  // A task of TensorFlow's own takes a definition for a cluster of the session's own.
  if (!task.data.address.empty()) TellCluster(task.id, is_stranger, &request);
  WEFT_RETURN_IF_ERROR(environment_.directory->CreateWorkerSession(task.id, request, cancellation));
  // Tasks of different clusters do not greet each other on data connections: their steps go
  // TensorFlow's way.
  if (is_stranger) task.data.address.clear();
  if (!task.data.address.empty()) environment_.host->Know(task.data);
  absl::MutexLock lock(&mutex_);
  tasks_[task.id.DeviceTask()] = std::move(task);
  return absl::OkStatus();
}

// Its cluster need not have this task, where tasks come and go, and it has to ask masters now and
// then: whether they live, to hold steps while it moves. A stranger is told of all tasks.
void ClusterSession::TellCluster(const cluster::TaskId& task, bool is_stranger,
                                 tensorflow::CreateWorkerSessionRequest* request) const {
  request->mutable_server_def()->set_protocol("grpc");
  request->mutable_server_def()->set_job_name(task.job);
  request->mutable_server_def()->set_task_index(task.index);
  if (is_stranger) {
    environment_.directory->cluster().ToProto(request->mutable_server_def()->mutable_cluster());
    return;
  }
  const cluster::TaskId& self = environment_.directory->self();
  const StatusOr<std::string> address = environment_.directory->cluster().AddressOf(self);
  if (!address.ok()) return;
  tensorflow::JobDef* const job = request->mutable_server_def()->mutable_cluster()->add_job();
  job->set_name(self.job);
  (*job->mutable_tasks())[self.index] = *address;
}

void ClusterSession::Suspect(const std::vector<std::string>& tasks, const Status& why) {
  if (!absl::IsUnavailable(why) && !absl::IsAborted(why)) return;
  absl::MutexLock lock(&mutex_);
  for (const std::string& task : tasks) suspects_.try_emplace(task, why);
}

void ClusterSession::Forget(const std::string& task) {
  std::vector<std::shared_ptr<Executable>> retired;  // their ends call tasks: without the lock
  absl::MutexLock lock(&mutex_);
  for (auto it = executables_.begin(); it != executables_.end();) {
    if (!it->second->RunsAt(task)) {
      ++it;
      continue;
    }
    it->second->retired = true;
    retired.push_back(std::move(it->second));
    executables_.erase(it++);
  }
}

Status ClusterSession::Recheck(const std::string& task, Cancellation* cancellation) {
  cluster::TaskStatus old;
  Status why;
  {
    absl::MutexLock lock(&mutex_);
    const auto suspect = suspects_.find(task);
    const auto known = tasks_.find(task);
    if (suspect == suspects_.end() || known == tasks_.end()) return absl::OkStatus();
    old = known->second;
    why = suspect->second;
  }
  WEFT_ASSIGN_OR_RETURN(
      const std::vector<cluster::TaskStatus> found,
      environment_.directory->GetStatus({old.id}, std::min(environment_.patience, kProbePatience),
                                        cancellation));
  const cluster::TaskStatus& now = found.front();
  const bool restarted = now.data.incarnation != old.data.incarnation;
  // The same process may have let go of the session while it could not reach this one.
  if (restarted || absl::IsAborted(why)) {
    WEFT_RETURN_IF_ERROR(OpenTask(now, cancellation));
    Forget(task);
  }
  {
    absl::MutexLock lock(&mutex_);
    suspects_.erase(task);
  }
  const bool took_over = std::find(now.took_over.begin(), now.took_over.end(),
                                   old.data.incarnation) != now.took_over.end();
  if (!restarted || took_over) return absl::OkStatus();
  return Aborted("Task ", task, " was started again, and what its variables held is lost. This ",
                 "session goes on with the new process: run the initializers, or restore a ",
                 "checkpoint, then repeat the step");
}

StatusOr<compile::PlaceOptions> ClusterSession::Places() const {
  compile::PlaceOptions options{.kernels = &environment_.worker->options().catalogue->kernels(),
                                .default_device = client_device_,
                                .soft = config_.allow_soft_placement()};
  const auto add = [&](const DeviceAttributes& device) -> Status {
    WEFT_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(device.name));
    options.devices.push_back(std::move(name));
    return absl::OkStatus();
  };
  for (const DeviceAttributes& device : environment_.worker->devices())
    WEFT_RETURN_IF_ERROR(add(device));
  absl::MutexLock lock(&mutex_);
  for (const auto& [name, task] : tasks_) {
    for (const DeviceAttributes& device : task.devices) WEFT_RETURN_IF_ERROR(add(device));
  }
  for (const cluster::TaskId& task : OtherTasks()) {
    if (!tasks_.contains(task.DeviceTask())) options.other_tasks.push_back(task.DeviceTask());
  }
  return options;
}

Status ClusterSession::Extend(GraphDef def, Cancellation* cancellation) {
  absl::MutexLock setup(&setup_mutex_);
  WEFT_RETURN_IF_ERROR(distribution_.PlaceVariables(&def));
  if (distribution_.is_on() && !def.nodes.empty())
    WEFT_RETURN_IF_ERROR(EnsureTasks(distribution_.tasks(), cancellation));
  WEFT_RETURN_IF_ERROR(EnsureTasks(TasksNamedBy(def), cancellation));
  WEFT_ASSIGN_OR_RETURN(const compile::PlaceOptions places, Places());
  return graph_.Extend(std::move(def), places);
}

StatusOr<std::shared_ptr<ClusterSession::Executable>> ClusterSession::Prepare(
    const std::string& signature, const std::string& key, const Step& step) {
  if (const std::shared_ptr<Executable> known = Known(key, /*suspects_too=*/true)) {
    for (const StepParts::Remote& remote : known->parts.remote) {
      WEFT_RETURN_IF_ERROR(Recheck(remote.task, step.cancellation.get()));
    }
  }
  std::shared_ptr<Executable> executable = Known(key, /*suspects_too=*/true);
  if (executable != nullptr) return executable;
  if (key == signature) {
    WEFT_ASSIGN_OR_RETURN(executable, Compile(step, step::FeedShapes::kThese, nullptr));
  } else if (key == step::AnyShapesKey(signature)) {
    WEFT_ASSIGN_OR_RETURN(executable, Compile(step, step::FeedShapes::kAny, nullptr));
  } else {
    step::Replication replication;
    replication.options = distribution_.OptionsFor(step.feeds, client_device_.ToString());
    WEFT_ASSIGN_OR_RETURN(executable, Compile(step, step::FeedShapes::kAny, &replication));
    WEFT_RETURN_IF_ERROR(distribution_.Note(signature, replication.outcome));
    if (!replication.outcome.refusal.empty()) {
      absl::MutexLock lock(&mutex_);
      const auto [known, is_new] = executables_.emplace(signature, executable);
      executable->retired = !is_new;
      return known->second;
    }
  }
  absl::MutexLock lock(&mutex_);
  executables_.emplace(key, executable);
  return executable;
}

StatusOr<std::shared_ptr<ClusterSession::Executable>> ClusterSession::Compile(
    const Step& request, step::FeedShapes shapes, step::Replication* replication) {
  auto executable = std::make_shared<Executable>(environment_);
  WEFT_ASSIGN_OR_RETURN(const compile::PlaceOptions places, Places());
  const compile::Signature signature =
      step::SignatureOf(request.feeds, request.fetches, request.targets,
                        request.started ? step::FeedShapes::kAny : shapes);
  WEFT_ASSIGN_OR_RETURN(step::StepGraph cut, request.started
                                                 ? graph_.CutPartial(signature, places)
                                                 : graph_.Cut(signature, places, replication));
  executable->feed_shapes = std::move(cut.feed_shapes);
  executable->made_for = std::move(cut.made_for);
  std::map<std::string, uint64_t> incarnations;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [name, task] : tasks_) {
      for (const DeviceAttributes& device : task.devices)
        incarnations[device.name] = device.incarnation;
    }
  }
  for (const DeviceAttributes& device : environment_.worker->devices()) {
    incarnations[device.name] = device.incarnation;
  }
  WEFT_ASSIGN_OR_RETURN(auto parts, step::SplitByTask(cut.graph, incarnations));
  executable->parts.session = handle_;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [task, part] : parts) {
      const auto open = tasks_.find(task);
      if (open != tasks_.end() && open->second.data.address.empty())
        executable->parts.by_calls = true;
    }
  }
  std::vector<std::string> others;
  for (const auto& [task, part] : parts) {
    if (task != environment_.worker->task()) others.push_back(task);
  }
  // A task that goes to another process knows nothing of what is registered meanwhile.
  WEFT_RETURN_IF_ERROR(environment_.gate->EnterSetup(others, request.cancellation.get()));
  const absl::Cleanup leave = [&] { environment_.gate->LeaveSetup(others); };
  // Before any of them hears where the others are.
  for (const auto& [task, part] : parts) {
    if (task != environment_.worker->task())
      WEFT_RETURN_IF_ERROR(Recheck(task, request.cancellation.get()));
  }
  for (auto& [task, part] : parts) {
    // TensorFlow's tasks name edges and do not number them.
    for (Node* node : part.nodes()) {
      if (executable->parts.by_calls && node->attrs().contains(compile::kEdgeAttr))
        node->RemoveAttr(compile::kEdgeAttr);
    }
    const Status registered =
        RegisterPart(task, std::move(part), request.cancellation.get(), executable.get());
    if (registered.ok()) continue;
    if (task != environment_.worker->task()) Suspect({task}, registered);
    executable->retired = true;
    return registered;
  }
  return executable;
}

Status ClusterSession::RegisterPart(const std::string& task, Graph part, Cancellation* cancellation,
                                    Executable* executable) {
  worker::Worker* worker = environment_.worker;
  if (task == worker->task()) {
    WEFT_ASSIGN_OR_RETURN(
        const uint32_t graph,
        worker->RegisterGraph(handle_, std::move(part), worker::PartOptionsFromConfig(config_)));
    executable->parts.local = graph;
    return absl::OkStatus();
  }
  WEFT_RETURN_IF_ERROR(Recheck(task, cancellation));
  cluster::TaskId id;
  wire::RegisterGraphExtension extension;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = tasks_.find(task);
    if (found == tasks_.end())
      return Internal("A node was placed at ", task, ", which is not open");
    id = found->second.id;
    const auto add = [&](const cluster::TaskAddress& address) {
      wire::TaskInfo* info = extension.add_tasks();
      info->set_task(address.task);
      info->set_data_address(address.address);
      info->set_incarnation(address.incarnation);
    };
    add(environment_.self);
    for (const auto& [name, other] : tasks_) {
      if (!other.data.address.empty()) add(other.data);
    }
  }
  tensorflow::RegisterGraphRequest request;
  request.set_session_handle(handle_);
  request.set_create_worker_session_called(true);
  *request.mutable_config_proto() = config_;
  *request.mutable_graph_options() = config_.graph_options();
  WEFT_RETURN_IF_ERROR(
      GraphDefToProto(ExportGraph(part, {.assigned_devices = true, .strip_defaults = true}),
                      request.mutable_graph_def()));
  WEFT_ASSIGN_OR_RETURN(std::string handle,
                        environment_.directory->RegisterGraph(id, request, extension, nullptr));
  uint32_t graph = 0;
  if (!executable->parts.by_calls && !absl::SimpleAtoi(handle, &graph)) {
    return Internal("Task ", task, " gave a graph handle that is no number: '", handle, "'");
  }
  executable->registered.emplace_back(id, handle);
  executable->parts.remote.push_back(
      {task, graph, std::move(handle), id,
       std::make_shared<const WaitSubject>(WaitSubject{
           .waiter = environment_.worker->task(), .what = "the end of its part", .on = task})});
  return absl::OkStatus();
}

std::shared_ptr<ClusterSession::Executable> ClusterSession::Known(const std::string& key,
                                                                  bool suspects_too) {
  absl::MutexLock lock(&mutex_);
  const auto found = executables_.find(key);
  if (found == executables_.end()) return nullptr;
  return suspects_too || !HasSuspects(*found->second) ? found->second : nullptr;
}

bool ClusterSession::HasSuspects(const Executable& executable) const {
  return std::any_of(suspects_.begin(), suspects_.end(),
                     [&](const auto& suspect) { return executable.RunsAt(suspect.first); });
}

void ClusterSession::Run(Step step, Done done) {
  std::string signature = absl::StrCat(step.started ? "partial;" : "",
                                       step::SignatureKey(step.feeds, step.fetches, step.targets));
  const bool is_split = !step.started && distribution_.MaySplit(signature, step.feeds);
  std::string key = is_split ? absl::StrCat(kReplicated, signature) : signature;
  std::shared_ptr<Executable> known = Known(key, /*suspects_too=*/false);
  if (known != nullptr && !step::TakesShapes(known->made_for, step.feeds)) {
    key = step::AnyShapesKey(signature);
    known = Known(key, /*suspects_too=*/false);
  }
  if (known != nullptr) {
    Start(std::move(known), std::move(step), std::move(done));
    return;
  }
  // Registering waits for other tasks: not on the caller's thread. The step holds this session.
  environment_.setup->Schedule([this, signature = std::move(signature), key = std::move(key),
                                step = std::move(step), done = std::move(done)]() mutable {
    StatusOr<std::shared_ptr<Executable>> executable = nullptr;
    {
      absl::MutexLock setup(&setup_mutex_);
      executable = Prepare(signature, key, step);
      // Another step of other shapes may have come first.
      if (executable.ok() && !step::TakesShapes((*executable)->made_for, step.feeds))
        executable = Prepare(signature, step::AnyShapesKey(signature), step);
    }
    if (executable.ok()) {
      Start(*std::move(executable), std::move(step), std::move(done));
    } else {
      done(executable.status());
    }
  });
}

Status ClusterSession::FillInHandles(std::vector<step::Feed>* feeds) const {
  for (auto& [name, value] : *feeds) {
    if (value.dtype() != DType::kResource || value.num_elements() != 1) continue;
    const ResourceHandle& handle = value.scalar<ResourceHandle>();
    if (handle.container != kTensorHandleContainer) continue;
    WEFT_ASSIGN_OR_RETURN(value, environment_.worker->TensorOfSession(handle_, handle.name));
  }
  return absl::OkStatus();
}

void ClusterSession::Start(std::shared_ptr<Executable> executable, Step step, Done done) {
  if (!executable->parts.remote.empty()) {
    // The step holds this session.
    if (!environment_.gate->Enter(
            executable->parts.remote, &step, &done,
            [this](Step held, Done then) { Run(std::move(held), std::move(then)); }))
      return;
    // From here on none of its tasks can go to another process; one may have gone since the parts
    // were registered.
    mutex_.Lock();
    const bool is_stale = HasSuspects(*executable);
    mutex_.Unlock();
    if (is_stale) {
      environment_.gate->Leave(executable->parts.remote);
      executable.reset();
      Run(std::move(step), std::move(done));
      return;
    }
    done = [this, executable, done = std::move(done)](StatusOr<StepResult> result) mutable {
      environment_.gate->Leave(executable->parts.remote);
      executable.reset();  // before the session, which `done` may end
      done(std::move(result));
    };
  }
  if (step.started) {
    step.feeds.clear();
    step.started = [started = std::move(step.started), client_device = client_device_.ToString(),
                    feed_shapes = executable->feed_shapes](PartialStart begun) mutable {
      begun.client_device = client_device;
      begun.feed_shapes = std::move(feed_shapes);
      started(std::move(begun));
    };
  }
  if (Status filled = FillInHandles(&step.feeds); !filled.ok()) {
    done(std::move(filled));
    return;
  }
  absl::Span<const PartialShape> shapes;
  if (!step.any_shape) shapes = executable->feed_shapes;
  if (Status fits = step::CheckFeeds(shapes, step.feeds); !fits.ok()) {
    done(std::move(fits));
    return;
  }
  const StepParts& parts = executable->parts;
  RunParts(environment_.worker, environment_.host, environment_.directory, parts, std::move(step),
           [this, executable, done = std::move(done)](StatusOr<StepResult> result) mutable {
             std::vector<std::string> tasks;
             for (const StepParts::Remote& remote : executable->parts.remote) {
               if (!result.ok()) tasks.push_back(remote.task);
             }
             Suspect(tasks, result.status());
             executable.reset();  // before the session, which `done` may end
             done(std::move(result));
           });
}

}  // namespace weft::master
