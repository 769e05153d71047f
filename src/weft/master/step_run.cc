// SPDX-License-Identifier: Apache-2.0
#include "weft/master/step_run.h"

#include <atomic>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

#include "proto/tensorflow/config.pb.h"
#include "weft/wire/run_metadata_proto.h"

namespace weft::master {
namespace {

// Steps of all masters meet at the workers: each master starts somewhere else.
int64_t NextStepId() {
  static std::atomic<int64_t>* const next = [] {
    std::random_device device;
    const uint64_t start = ((uint64_t{device()} << 32) | device()) >> 2;
    return new std::atomic<int64_t>(static_cast<int64_t>(start));
  }();
  return next->fetch_add(1, std::memory_order_relaxed);
}

Status FromTask(const std::string& task, const Status& status) {
  const std::string prefix = absl::StrCat("From ", task, ":\n");
  if (status.ok() || absl::StartsWith(status.message(), "From /job:")) return status;
  Status named(status.code(), absl::StrCat(prefix, status.message()));
  status.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& p) { named.SetPayload(url, p); });
  return named;
}

class StepRun final : public worker::StepWatcher, public std::enable_shared_from_this<StepRun> {
 public:
  StepRun(worker::Worker* worker, worker::StepHost* host, cluster::TaskDirectory* directory,
          int64_t id, StepRunner::Step step, StepRunner::Done done)
      : worker_(worker),
        host_(host),
        directory_(directory),
        id_(id),
        step_(std::move(step)),
        done_(std::move(done)) {}

  void Start(const StepParts& parts) {
    {
      absl::MutexLock lock(&mutex_);
      for (const StepParts::Remote& remote : parts.remote) {
        running_[remote.task] = worker_->options().waits->Begin(remote.wait, id_);
      }
      if (parts.local) running_[worker_->task()] = Wait();
    }
    if (parts.by_calls) {
      calls_ = std::make_shared<Cancellation>();
    } else {
      host_->Watch(id_, shared_from_this());
    }
    std::weak_ptr<StepRun> weak = weak_from_this();
    watching_ = step_.cancellation->Register(&token_, [weak](const Status& why) {
      if (const auto alive = weak.lock()) alive->Abort(why);
    });
    for (const StepParts::Remote& remote : parts.remote) {
      if (calls_ != nullptr) {
        CallRemote(parts.session, remote);
        continue;
      }
      host_->StartRemote(remote.task, remote.graph, id_, step_.trace, step_.partition_graphs);
    }
    if (!watching_) Abort(step_.cancellation->status());
    if (parts.local) StartLocal(*parts.local);
    {
      absl::MutexLock lock(&mutex_);
      starting_ = false;
      if (!running_.empty()) return;
    }
    Finish();
  }

  void StartLocal(uint32_t graph) {
    worker::TaskStep local{.graph = graph,
                           .step = id_,
                           .trace = step_.trace,
                           .partition_graphs = step_.partition_graphs,
                           .source = calls_ != nullptr ? directory_ : nullptr,
                           .cancellation = step_.cancellation};
    for (step::Feed& feed : step_.feeds) local.arguments.push_back(std::move(feed.second));
    worker_->RunStep(std::move(local), [self = shared_from_this()](step::PartReport report) {
      self->PartEnded(self->worker_->task(), std::move(report));
    });
  }

  void PartEnded(const std::string& task, step::PartReport report) override {
    Status failure;
    bool last = false;
    {
      absl::MutexLock lock(&mutex_);
      if (running_.erase(task) == 0) return;
      const bool is_local = task == worker_->task();
      if (!report.status.ok() && status_.ok()) {
        status_ = is_local ? report.status : FromTask(task, report.status);
        failure = status_;
      }
      if (is_local) result_.fetches = std::move(report.results);
      Append(&result_.metadata.trace, std::move(report.metadata.trace));
      Append(&result_.metadata.partition_graphs, std::move(report.metadata.partition_graphs));
      last = running_.empty() && !starting_;
    }
    if (!failure.ok()) step_.cancellation->Cancel(failure);
    if (last) Finish();
  }

 private:
  void CallRemote(const std::string& session, const StepParts::Remote& remote) {
    called_.push_back(remote.id);
    tensorflow::RunGraphRequest request;
    request.set_session_handle(session);
    request.set_create_worker_session_called(true);
    request.set_graph_handle(remote.handle);
    request.set_step_id(id_);
    request.mutable_exec_opts()->set_record_timeline(step_.trace);
    request.mutable_exec_opts()->set_record_partition_graphs(step_.partition_graphs);
    request.set_store_errors_in_response_body(true);
    directory_->RunGraph(
        remote.id, request, calls_,
        [self = shared_from_this(),
         task = remote.task](StatusOr<tensorflow::RunGraphResponse> response) {
          step::PartReport report;
          report.status = response.status();
          if (response.ok()) {
            tensorflow::RunMetadata metadata;
            metadata.mutable_step_stats()->Swap(response->mutable_step_stats());
            metadata.mutable_partition_graphs()->Swap(response->mutable_partition_graph());
            report.status = wire::ReadRunMetadata(metadata, &report.metadata);
          }
          // gRPC's thread must not wait for what comes of it.
          self->worker_->options().pool->Schedule(
              [self, task, report = std::move(report)]() mutable {
                self->PartEnded(task, std::move(report));
              });
        });
  }

  template <typename T>
  static void Append(std::vector<T>* all, std::vector<T> more) {
    for (T& item : more) all->push_back(std::move(item));
  }

  // Tells the other tasks; this one's part is told by the cancellation itself.
  void Abort(const Status& why) {
    if (calls_ != nullptr) return calls_->Cancel(why);
    std::vector<std::string> others;
    {
      absl::MutexLock lock(&mutex_);
      for (const auto& [task, wait] : running_) {
        if (task != worker_->task()) others.push_back(task);
      }
    }
    for (const std::string& task : others) host_->AbortRemote(task, id_, why);
  }

  void Finish() {
    if (calls_ != nullptr) {
      for (const cluster::TaskId& task : called_) directory_->CleanupGraph(task, id_);
      worker_->AbortStep(id_, Cancelled("The step is over"));
    } else {
      host_->Unwatch(id_);
    }
    if (watching_) step_.cancellation->Deregister(token_);
    StatusOr<StepResult> result = StepResult();
    {
      absl::MutexLock lock(&mutex_);
      result = status_.ok() ? StatusOr<StepResult>(std::move(result_)) : status_;
    }
    StepRunner::Done done = std::move(done_);
    done(std::move(result));
  }

  worker::Worker* const worker_;
  worker::StepHost* const host_;
  cluster::TaskDirectory* const directory_;
  const int64_t id_;
  StepRunner::Step step_;
  StepRunner::Done done_;
  std::shared_ptr<Cancellation> calls_;  // of RunGraph, which may end after us; null: by frames
  std::vector<cluster::TaskId> called_;
  Cancellation::Token token_ = 0;
  bool watching_ = false;
  absl::Mutex mutex_;
  // A task may be lost while others are still being told: nothing ends before all have been.
  bool starting_ ABSL_GUARDED_BY(mutex_) = true;
  std::map<std::string, Wait> running_ ABSL_GUARDED_BY(mutex_);  // tasks whose parts have not ended
  Status status_ ABSL_GUARDED_BY(mutex_);
  StepResult result_ ABSL_GUARDED_BY(mutex_);
};

// Nothing leaves this task: the worker alone runs the step.
void RunHere(worker::Worker* worker, uint32_t graph, int64_t id, StepRunner::Step step,
             StepRunner::Done done) {
  worker::TaskStep local{.graph = graph,
                         .step = id,
                         .trace = step.trace,
                         .partition_graphs = step.partition_graphs,
                         .cancellation = std::move(step.cancellation)};
  for (step::Feed& feed : step.feeds) local.arguments.push_back(std::move(feed.second));
  worker->RunStep(std::move(local), [done = std::move(done)](step::PartReport report) mutable {
    if (!report.status.ok()) {
      done(report.status);
      return;
    }
    done(StepResult{.fetches = std::move(report.results), .metadata = std::move(report.metadata)});
  });
}

}  // namespace

void RunParts(worker::Worker* worker, worker::StepHost* host, cluster::TaskDirectory* directory,
              const StepParts& parts, StepRunner::Step step, StepRunner::Done done) {
  const int64_t id = NextStepId();
  if (step.started) {
    Ref<rendezvous::StepRendezvous> rendezvous = worker->RendezvousOf(id);
    if (!rendezvous) {
      done(ResourceExhausted("Too many steps wait for their tensors at ", worker->task()));
      return;
    }
    auto started = std::exchange(step.started, nullptr);
    started({.rendezvous = Ref<Rendezvous>(rendezvous), .client_device = {}, .feed_shapes = {}});
  }
  if (parts.remote.empty() && parts.local) {
    RunHere(worker, *parts.local, id, std::move(step), std::move(done));
    return;
  }
  std::make_shared<StepRun>(worker, host, directory, id, std::move(step), std::move(done))
      ->Start(parts);
}

}  // namespace weft::master
