// SPDX-License-Identifier: Apache-2.0
#include "weft/worker/worker.h"

#include <algorithm>
#include <random>
#include <utility>

#include "base/log.h"
#include "weft/kernel/session_tensor.h"

namespace weft::worker {

using rendezvous::StepRendezvous;

struct Worker::Session {
  WorkerSessionSpec spec;
  std::vector<std::unique_ptr<Device>> own_devices;  // where it shares no state
  step::SessionDevices devices;
};

struct Worker::RegisteredGraph {
  std::shared_ptr<Session> session;            // shared: its devices and kernels are the graph's
  std::shared_ptr<const step::TaskPart> part;  // shared with running steps
  const std::string& handle() const { return session->spec.handle; }
};

// This task's part of a running step.
struct Worker::Running {
  std::shared_ptr<RegisteredGraph> graph;
  std::shared_ptr<Cancellation> cancellation;
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
      environment_{.pool = options_.pool,
                   .files = options_.files,
                   .waits = options_.waits,
                   .single_threaded = options_.single_threaded},
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
  std::vector<Device*> devices = options_.devices;
  if (spec.isolate) {
    WEFT_ASSIGN_OR_RETURN(session->own_devices,
                          options_.factory->Make(options_.task, options_.pool));
    devices.clear();
    for (const auto& device : session->own_devices) {
      devices.push_back(device.get());
      if (options_.collectives != nullptr) OfferCollectives(device.get(), options_.collectives);
    }
  }
  session->devices = step::SessionDevices(std::move(devices));
  std::vector<std::string> stale;
  {
    absl::MutexLock lock(&mutex_);
    WEFT_RETURN_IF_ERROR(refusal_);
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

bool Worker::HasSession(const std::string& handle) const {
  absl::MutexLock lock(&mutex_);
  return sessions_.contains(handle);
}

bool Worker::has_isolated_sessions() const {
  absl::MutexLock lock(&mutex_);
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [](const auto& session) { return session.second->spec.isolate; });
}

void Worker::Refuse(Status why) {
  absl::MutexLock lock(&mutex_);
  refusal_ = std::move(why);
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
      if (it->second->handle() == handle) {
        graphs.push_back(std::move(it->second));
        graphs_.erase(it++);
      } else {
        ++it;
      }
    }
    for (const auto& [step, part] : running_) {
      if (part->graph->handle() == handle) running.push_back(part);
    }
  }
  Cancel(running, Cancelled("Step was cancelled by an explicit call to `Session::Close()`."));
  return absl::OkStatus();
}

StatusOr<uint32_t> Worker::RegisterGraph(const std::string& handle, Graph part,
                                         const step::PartOptions& options) {
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
  auto graph = std::make_shared<RegisteredGraph>();  // shared with running steps
  WEFT_ASSIGN_OR_RETURN(graph->part,
                        step::CompileTaskPart(std::move(part), options, *options_.catalogue,
                                              session->devices, options_.pool));
  graph->session = std::move(session);
  absl::MutexLock lock(&mutex_);
  WEFT_RETURN_IF_ERROR(refusal_);
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

StatusOr<Tensor> Worker::TensorOfSession(const std::string& session,
                                         const std::string& handle) const {
  std::shared_ptr<Session> found;
  {
    absl::MutexLock lock(&mutex_);
    if (const auto it = sessions_.find(session); it != sessions_.end()) found = it->second;
  }
  if (found != nullptr) {
    const StatusOr<Ref<SessionTensor>> kept =
        found->devices.resources->Lookup<SessionTensor>(kTensorHandleContainer, handle);
    if (kept.ok()) return (*kept)->value();
  }
  return InvalidArgument("The tensor with handle '", handle, "' is not in the session store at ",
                         task_, ": fetch it there, or feed its value");
}

void Worker::Cleanup(const std::vector<std::string>& containers) {
  for (Device* device : options_.devices) {
    if (containers.empty()) device->resources().Cleanup(kDefaultContainer);
    for (const std::string& container : containers) device->resources().Cleanup(container);
  }
}

void Worker::RunStep(TaskStep step, Done done) {
  auto running = std::make_shared<Running>();  // shared with who may cancel it
  running->cancellation = std::move(step.cancellation);
  Ref<StepRendezvous> rendezvous;  // null where nothing is exchanged
  Status refused;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = graphs_.find(step.graph);
    if (!refusal_.ok()) {
      refused = refusal_;
    } else if (found == graphs_.end()) {
      refused = Aborted("Graph handle is not found: ", step.graph, ". Possibly, this worker (\"",
                        task_, "\") just restarted.");
    } else {
      running->graph = found->second;
      if (running->graph->part->exchanges) {
        rendezvous = steps_.Start(step.step);
        if (!rendezvous) {
          refused = Aborted("Step ", step.step, " is over, or was started twice, at ", task_);
        } else {
          running_.emplace(step.step, running);
          if (step.source != nullptr) rendezvous->PullFrom(step.source);
        }
      }
    }
  }
  if (!refused.ok()) {
    done({.status = refused});
    return;
  }
  const bool exchanges = static_cast<bool>(rendezvous);
  step::PartCall call{.part = running->graph->part,
                      .step = step.step,
                      .arguments = std::move(step.arguments),
                      .cancellation = running->cancellation.get(),
                      .rendezvous = std::move(rendezvous),
                      .trace = step.trace,
                      .partition_graphs = step.partition_graphs};
  step::RunTaskPart(
      environment_, std::move(call),
      [this, running, step = step.step, exchanges, is_pulled = step.source != nullptr,
       updates = updates_.load(), done = std::move(done)](step::PartReport report) mutable {
        if (options_.ran) options_.ran();
        if (running->graph->part->changes_variables && report.status.ok()) {
          const int64_t before = updates_.fetch_add(1);
          if (options_.updated) options_.updated(before - updates);
        }
        if (exchanges) {
          if (is_pulled) {
            steps_.Finish(step);
          } else {
            steps_.Bury(step);
          }
          absl::MutexLock lock(&mutex_);
          running_.erase(step);
        }
        done(std::move(report));
      });
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
      if (running->graph->part->peers.contains(task)) affected.push_back(running);
    }
  }
  Cancel(affected, why);
}

}  // namespace weft::worker
