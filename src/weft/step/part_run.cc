// SPDX-License-Identifier: Apache-2.0
#include "weft/step/part_run.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/denormals.h"

namespace weft::step {
namespace {

StepEnvironment EnvironmentOf(const TaskEnvironment& task, const PartCall& call, Device* device,
                              ResourceManager* step_resources) {
  return {.step_id = call.step,
          .device = device,
          .cancellation = call.cancellation,
          .rendezvous = call.rendezvous.get(),
          .step_resources = step_resources,
          .waits = task.waits,
          .files = task.files,
          .session = &call.part->session,
          .deterministic = call.part->options.deterministic,
          .single_threaded = task.single_threaded};
}

// One device computes the part in order: on the caller's thread, without anything to share.
PartReport RunInOrder(const TaskEnvironment& environment, PartCall call) {
  const DevicePart& part = call.part->parts.front();
  ResourceManager step_resources;
  executor::StepTrace trace;
  executor::RunRequest request;
  request.environment = EnvironmentOf(environment, call, part.device, &step_resources);
  request.arguments = std::move(call.arguments);
  if (call.trace) request.trace = &trace;
  PartReport report;
  report.status = part.runner->RunInline(request, &report.results);
  if (!report.status.ok()) call.cancellation->Cancel(report.status);
  step_resources.CleanupAll();
  if (call.trace) report.metadata.trace = trace.Take();
  if (call.partition_graphs) report.metadata.partition_graphs.push_back(call.part->definition);
  return report;
}

// A part whose pieces wait, for each other or for other tasks.
class PartRun : public std::enable_shared_from_this<PartRun> {
 public:
  PartRun(const TaskEnvironment& environment, PartCall call, PartDone done)
      : environment_(environment), call_(std::move(call)), done_(std::move(done)) {}

  void Start() {
    if (call_.rendezvous &&
        !call_.cancellation->Register(&token_, [rendezvous = call_.rendezvous](const Status& why) {
          rendezvous->Abort(why);
        })) {
      call_.rendezvous->Abort(call_.cancellation->status());
    }
    const std::vector<DevicePart>& parts = call_.part->parts;
    {
      absl::MutexLock lock(&mutex_);
      running_ = parts.size() + 1;  // one is ours, until all have started
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      const bool is_last = i + 1 == parts.size();
      executor::RunRequest request;
      request.environment = EnvironmentOf(environment_, call_, parts[i].device, &step_resources_);
      if (call_.trace) request.trace = &trace_;
      request.arguments = is_last ? std::move(call_.arguments) : call_.arguments;
      auto run = [self = shared_from_this(), runner = parts[i].runner.get(),
                  request = std::move(request)]() mutable {
        runner->Run(std::move(request), [self](Status status, std::vector<Tensor> results) {
          self->Ended(std::move(status), std::move(results));
        });
      };
      if (is_last) {
        run();
      } else {
        environment_.pool->Schedule(std::move(run));
      }
    }
    Ended(absl::OkStatus(), {});
  }

 private:
  // A piece has ended, and computed those of `results` that are not empty.
  void Ended(Status status, std::vector<Tensor> results) {
    bool failed = false;
    bool last = false;
    PartReport report;
    {
      absl::MutexLock lock(&mutex_);
      failed = !status.ok() && report_.status.ok();
      if (failed) report_.status = status;
      if (report_.results.size() < results.size()) report_.results.resize(results.size());
      for (size_t i = 0; i < results.size(); ++i) {
        if (results[i].IsInitialized()) report_.results[i] = std::move(results[i]);
      }
      last = --running_ == 0;
      if (last) report = std::move(report_);
    }
    if (failed) call_.cancellation->Cancel(status);
    if (!last) return;
    if (call_.rendezvous) call_.cancellation->Deregister(token_);
    step_resources_.CleanupAll();
    report.metadata.trace = trace_.Take();
    if (call_.partition_graphs) report.metadata.partition_graphs.push_back(call_.part->definition);
    PartDone done = std::move(done_);
    done(std::move(report));
  }

  const TaskEnvironment& environment_;
  PartCall call_;
  PartDone done_;
  Cancellation::Token token_ = 0;
  executor::StepTrace trace_;
  ResourceManager step_resources_;
  absl::Mutex mutex_;
  size_t running_ ABSL_GUARDED_BY(mutex_) = 0;  // pieces that have not ended
  PartReport report_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

void RunTaskPart(const TaskEnvironment& environment, PartCall call, PartDone done) {
  const ScopedFlushDenormals flush;  // kernels may run on the caller's thread
  const std::vector<DevicePart>& parts = call.part->parts;
  if (parts.size() == 1 && parts.front().plan->is_straight_line()) {
    done(RunInOrder(environment, std::move(call)));
    return;
  }
  std::make_shared<PartRun>(environment, std::move(call), std::move(done))->Start();
}

}  // namespace weft::step
