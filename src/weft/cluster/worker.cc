// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/worker.h"

#include <random>
#include <utility>

#include "base/log.h"
#include "weft/device/cpu/cpu_device.h"

namespace weft::cluster {

using rendezvous::StepRendezvous;

struct Worker::Session {
  WorkerSessionSpec spec;
  std::vector<std::unique_ptr<Device>> own_devices;  // where it shares no state
  SessionDevices devices;
};

// This task's part of a running step.
struct Worker::Running {
  int64_t step = 0;
  std::shared_ptr<RegisteredGraph> graph;
  std::shared_ptr<Cancellation> cancellation;
  Cancellation::Token token = 0;
  Ref<StepRendezvous> rendezvous;  // null where nothing is exchanged
  executor::StepTrace trace;
  bool traced = false;
  bool partition_graphs = false;
  ResourceManager resources;
  Done done;
  absl::Mutex mutex;
  size_t parts_left ABSL_GUARDED_BY(mutex) = 0;
  TaskReport report ABSL_GUARDED_BY(mutex);
};

namespace {

rendezvous::StepTable::Make MakeRendezvous(std::string task, rendezvous::TensorSink* sink,
                                           WaitRegistry* waits) {
  return [task = std::move(task), sink, waits](int64_t step) {
    return MakeRef<StepRendezvous>(step, task, sink, waits);
  };
}

}  // namespace

Worker::Worker(WorkerOptions options, rendezvous::TensorSink* sink)
    : options_(std::move(options)),
      task_(options_.task.TaskName()),
      steps_(MakeRendezvous(task_, sink, options_.waits), options_.clock,
             rendezvous::StepTable::Limits()),
      // A number of an earlier process must not name another graph here.
      next_graph_(std::random_device()()) {}

Worker::~Worker() = default;

std::vector<DeviceAttributes> Worker::devices() const {
  std::vector<DeviceAttributes> all;
  for (const Device* device : options_.devices) all.push_back(device->attributes());
  return all;
}

Worker::Counts Worker::counts() const {
  const size_t open_steps = steps_.size();
  absl::MutexLock lock(&mutex_);
  return {.sessions = sessions_.size(),
          .graphs = graphs_.size(),
          .running = running_.size(),
          .open_steps = open_steps};
}

Status Worker::CreateSession(const WorkerSessionSpec& spec) {
  auto session = std::make_shared<Session>();
  session->spec = spec;
  session->devices.devices = options_.devices;
  if (spec.isolate) {
    session->devices.devices.clear();
    for (size_t i = 0; i < options_.devices.size(); ++i) {
      session->own_devices.push_back(
          MakeCpuDevice(options_.task, static_cast<int>(i), options_.pool));
      session->devices.devices.push_back(session->own_devices.back().get());
    }
  }
  for (size_t i = 0; i < session->devices.devices.size(); ++i) {
    session->devices.kernels.push_back(std::make_unique<compile::KernelCache>());
  }
  std::vector<std::string> stale;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [handle, known] : sessions_) {
      if (!spec.master.empty() && known->spec.master == spec.master &&
          known->spec.master_incarnation != spec.master_incarnation) {
        stale.push_back(handle);
      }
    }
    sessions_.try_emplace(spec.handle, std::move(session));
  }
  for (const std::string& handle : stale) {
    WEFT_LOG(INFO) << "Session " << handle << " of " << spec.master << " ended with its process";
    DeleteSession(handle).IgnoreError();
  }
  return absl::OkStatus();
}

std::set<std::pair<std::string, uint64_t>> Worker::masters() const {
  std::set<std::pair<std::string, uint64_t>> all;
  absl::MutexLock lock(&mutex_);
  for (const auto& [handle, session] : sessions_) {
    if (!session->spec.master.empty())
      all.emplace(session->spec.master, session->spec.master_incarnation);
  }
  return all;
}

void Worker::DropSessionsOf(const std::string& master, uint64_t incarnation) {
  std::vector<std::string> handles;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [handle, session] : sessions_) {
      if (session->spec.master == master && session->spec.master_incarnation == incarnation)
        handles.push_back(handle);
    }
  }
  for (const std::string& handle : handles) DeleteSession(handle).IgnoreError();
}

Status Worker::DeleteSession(const std::string& handle) {
  std::shared_ptr<Session> dropped;
  std::vector<std::shared_ptr<RegisteredGraph>> graphs;
  std::vector<std::shared_ptr<Running>> running;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sessions_.find(handle);
    if (found == sessions_.end()) return absl::OkStatus();
    dropped = std::move(found->second);
    sessions_.erase(found);
    for (auto it = graphs_.begin(); it != graphs_.end();) {
      if (it->second->session == handle) {
        graphs.push_back(std::move(it->second));
        graphs_.erase(it++);
      } else {
        ++it;
      }
    }
    for (const auto& [step, part] : running_) {
      if (part->graph->session == handle) running.push_back(part);
    }
  }
  Cancel(running, Cancelled("Step was cancelled by an explicit call to `Session::Close()`."));
  return absl::OkStatus();
}

StatusOr<uint32_t> Worker::RegisterGraph(const std::string& handle, Graph part,
                                         const RegisterOptions& options) {
  std::shared_ptr<Session> session;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sessions_.find(handle);
    if (found == sessions_.end()) {
      return Aborted("Session handle is not found: ", handle, ". Possibly this worker (\"", task_,
                     "\") just restarted.");
    }
    session = found->second;
  }
  WEFT_ASSIGN_OR_RETURN(
      std::shared_ptr<RegisteredGraph> graph,
      CompilePart(std::move(part), options, *options_.catalogue, session->devices, options_.pool));
  graph->session = handle;
  graph->owner = session;
  graph->peers.erase(task_);
  absl::MutexLock lock(&mutex_);
  while (graphs_.contains(next_graph_)) ++next_graph_;
  const uint32_t number = next_graph_++;
  graphs_.emplace(number, std::move(graph));
  return number;
}

Status Worker::DeregisterGraph(uint32_t number) {
  std::shared_ptr<RegisteredGraph> dropped;
  absl::MutexLock lock(&mutex_);
  const auto found = graphs_.find(number);
  if (found == graphs_.end()) return Aborted("Graph handle is not found: ", number);
  dropped = std::move(found->second);
  graphs_.erase(found);
  return absl::OkStatus();
}

void Worker::Cleanup(const std::vector<std::string>& containers) {
  for (Device* device : options_.devices) {
    if (containers.empty()) device->resources().Cleanup(kDefaultContainer);
    for (const std::string& container : containers) device->resources().Cleanup(container);
  }
}

void Worker::RunStep(TaskStep step, Done done) {
  auto running = std::make_shared<Running>();  // shared by the parts and by who may cancel them
  running->step = step.step;
  running->cancellation = std::move(step.cancellation);
  running->traced = step.trace;
  running->partition_graphs = step.partition_graphs;
  Status refused;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = graphs_.find(step.graph);
    if (found == graphs_.end()) {
      refused = Aborted("Graph handle is not found: ", step.graph, ". Possibly, this worker (\"",
                        task_, "\") just restarted.");
    } else {
      running->graph = found->second;
      if (running->graph->exchanges) {
        running->rendezvous = steps_.Start(step.step);
        if (!running->rendezvous) {
          refused = Aborted("Step ", step.step, " is over, or was started twice, at ", task_);
        } else {
          running_.emplace(step.step, running);
        }
      }
    }
  }
  if (!refused.ok()) {
    done({.status = refused});
    return;
  }
  running->done = std::move(done);
  if (running->rendezvous &&
      !running->cancellation->Register(
          &running->token,
          [rendezvous = running->rendezvous](const Status& why) { rendezvous->Abort(why); })) {
    running->rendezvous->Abort(running->cancellation->status());
  }
  StartParts(running, std::move(step.arguments));
}

void Worker::StartParts(const std::shared_ptr<Running>& running, std::vector<Tensor> arguments) {
  const std::vector<DevicePart>& parts = running->graph->parts;
  {
    absl::MutexLock lock(&running->mutex);
    running->parts_left = parts.size() + 1;  // one is ours, until all have started
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    executor::RunRequest request;
    request.environment = {.step_id = running->step,
                           .device = parts[i].device,
                           .cancellation = running->cancellation.get(),
                           .rendezvous = running->rendezvous.get(),
                           .step_resources = &running->resources,
                           .files = options_.files,
                           .single_threaded = options_.single_threaded};
    if (running->traced) request.trace = &running->trace;
    request.arguments = i + 1 == parts.size() ? std::move(arguments) : arguments;
    auto run = [this, running, runner = parts[i].runner.get(),
                request = std::move(request)]() mutable {
      runner->Run(std::move(request), [this, running](Status status, std::vector<Tensor> results) {
        EndPart(running, std::move(status), std::move(results));
      });
    };
    if (i + 1 < parts.size()) {
      options_.pool->Schedule(std::move(run));
    } else {
      run();
    }
  }
  EndPart(running, absl::OkStatus(), {});
}

void Worker::EndPart(const std::shared_ptr<Running>& running, Status status,
                     std::vector<Tensor> results) {
  TaskReport report;
  bool last = false;
  bool failed = false;
  {
    absl::MutexLock lock(&running->mutex);
    TaskReport& all = running->report;
    failed = !status.ok() && all.status.ok();
    if (failed) all.status = status;
    if (all.results.size() < results.size()) all.results.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].IsInitialized()) all.results[i] = std::move(results[i]);
    }
    last = --running->parts_left == 0;
    if (last) report = std::move(all);
  }
  if (failed) running->cancellation->Cancel(status);
  if (!last) return;
  if (running->rendezvous) {
    running->cancellation->Deregister(running->token);
    steps_.Bury(running->step);
    absl::MutexLock lock(&mutex_);
    running_.erase(running->step);
  }
  running->resources.CleanupAll();
  report.metadata.trace = running->trace.Take();
  if (running->partition_graphs)
    report.metadata.partition_graphs.push_back(running->graph->definition);
  Done done = std::move(running->done);
  done(std::move(report));
}

void Worker::Cancel(const std::vector<std::shared_ptr<Running>>& steps, const Status& reason) {
  for (const std::shared_ptr<Running>& running : steps) running->cancellation->Cancel(reason);
}

void Worker::AbortStep(int64_t step, const Status& reason) {
  std::shared_ptr<Running> running;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = running_.find(step);
    if (found != running_.end()) running = found->second;
  }
  if (running != nullptr) {
    running->cancellation->Cancel(reason);
  } else {
    steps_.Bury(step);
  }
}

void Worker::TaskLost(const std::string& task, const Status& why) {
  std::vector<std::shared_ptr<Running>> affected;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [step, running] : running_) {
      if (running->graph->peers.contains(task)) affected.push_back(running);
    }
  }
  Cancel(affected, why);
}

}  // namespace weft::cluster
