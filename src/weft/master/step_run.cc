// SPDX-License-Identifier: Apache-2.0
#include "weft/master/step_run.h"

#include <atomic>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"

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
  StepRun(worker::Worker* worker, worker::StepHost* host, StepRunner::Step step,
          StepRunner::Done done)
      : worker_(worker),
        host_(host),
        id_(NextStepId()),
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
    host_->Watch(id_, shared_from_this());
    std::weak_ptr<StepRun> weak = weak_from_this();
    watching_ = step_.cancellation->Register(&token_, [weak](const Status& why) {
      if (const auto alive = weak.lock()) alive->Abort(why);
    });
    for (const StepParts::Remote& remote : parts.remote) {
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
  template <typename T>
  static void Append(std::vector<T>* all, std::vector<T> more) {
    for (T& item : more) all->push_back(std::move(item));
  }

  // Tells the other tasks; this one's part is told by the cancellation itself.
  void Abort(const Status& why) {
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
    host_->Unwatch(id_);
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
  const int64_t id_;
  StepRunner::Step step_;
  StepRunner::Done done_;
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
void RunHere(worker::Worker* worker, uint32_t graph, StepRunner::Step step, StepRunner::Done done) {
  worker::TaskStep local{.graph = graph,
                         .step = NextStepId(),
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

void RunParts(worker::Worker* worker, worker::StepHost* host, const StepParts& parts,
              StepRunner::Step step, StepRunner::Done done) {
  if (parts.remote.empty() && parts.local) {
    RunHere(worker, *parts.local, std::move(step), std::move(done));
    return;
  }
  std::make_shared<StepRun>(worker, host, std::move(step), std::move(done))->Start(parts);
}

}  // namespace weft::master
