// SPDX-License-Identifier: Apache-2.0
#include "weft/session/direct_session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

#include "base/files.h"
#include "base/threads.h"
#include "weft/device/cpu/cpu_device.h"
#include "weft/session/step_engine.h"

namespace weft::session {
namespace {

class DirectSession final : public Session {
 public:
  explicit DirectSession(const DirectOptions& options)
      : pool_("weft-compute", options.num_threads > 0 ? options.num_threads : UsableCores(),
              options.num_threads <= UsableCores() ? kSpinMicros : 0) {
    const DeviceName task{.job = "localhost", .replica = 0, .task = 0};
    EngineOptions engine{.catalogue = options.catalogue,
                         .pool = &pool_,
                         .files = options.files != nullptr ? options.files : &real_files_,
                         .soft_placement = options.soft_placement,
                         .fold = options.fold,
                         .fuse = options.fuse,
                         .deterministic = options.deterministic,
                         .single_threaded = pool_.num_threads() == 1};
    for (int i = 0; i < std::max(1, options.num_cpu_devices); ++i) {
      devices_.push_back(MakeCpuDevice(task, i, &pool_));
      engine.devices.push_back(devices_.back().get());
    }
    engine_.emplace(std::move(engine));
  }

  ~DirectSession() override { Close().IgnoreError(); }

  Status Extend(const GraphDef& graph) override {
    WEFT_RETURN_IF_ERROR(CheckOpen());
    return engine_->Extend(graph);
  }

  Status Run(const RunOptions& options, const std::vector<Feed>& feeds,
             const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
             std::vector<Tensor>* results, RunMetadata* metadata) override {
    WEFT_RETURN_IF_ERROR(BeginStep());
    Status status;
    {
      Cancellation cancellation(&session_);
      executor::StepTrace trace;
      StepCall call{
          .feeds = feeds, .fetches = fetches, .targets = targets, .cancellation = &cancellation};
      if (metadata != nullptr && options.trace) call.trace = &trace;
      if (metadata != nullptr && options.partition_graphs) {
        call.partition_graphs = &metadata->partition_graphs;
      }
      status = RunAndWait(std::move(call), options.timeout, results);
      if (metadata != nullptr) metadata->trace = trace.Take();
    }
    EndStep();
    return status;
  }

  StatusOr<std::vector<DeviceAttributes>> ListDevices() override {
    WEFT_RETURN_IF_ERROR(CheckOpen());
    std::vector<DeviceAttributes> all;
    for (const auto& device : devices_) all.push_back(device->attributes());
    return all;
  }

  Status Close() override {
    session_.Cancel(Cancelled("Step was cancelled by an explicit call to `Session::Close()`."));
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    while (running_ > 0) idle_.Wait(&mutex_);
    return absl::OkStatus();
  }

 private:
  Status CheckOpen() {
    absl::MutexLock lock(&mutex_);
    if (closed_) return FailedPrecondition("Session has been closed.");
    return absl::OkStatus();
  }
  Status BeginStep() {
    absl::MutexLock lock(&mutex_);
    if (closed_) return FailedPrecondition("Session has been closed.");
    ++running_;
    return absl::OkStatus();
  }
  void EndStep() {
    absl::MutexLock lock(&mutex_);
    if (--running_ == 0) idle_.SignalAll();
  }

  Status RunAndWait(StepCall call, absl::Duration timeout, std::vector<Tensor>* results) {
    // Outlives the callback, which may still be leaving Notify when the wait ends.
    struct Outcome {
      absl::Notification ended;
      StatusOr<std::vector<Tensor>> results = Internal("The step gave no answer");
    };
    auto outcome = std::make_shared<Outcome>();  // shared with the callback
    Cancellation* cancellation = call.cancellation;
    engine_->Run(std::move(call), [outcome](StatusOr<std::vector<Tensor>> ended) {
      outcome->results = std::move(ended);
      outcome->ended.Notify();
    });
    if (!outcome->ended.WaitForNotificationWithTimeout(timeout)) {
      cancellation->Cancel(
          DeadlineExceeded("Timed out waiting for a step of ", absl::FormatDuration(timeout)));
      outcome->ended.WaitForNotification();
    }
    const Status& status = outcome->results.status();
    // What waited when the step was ended knows only that; the caller wants to know why.
    if (absl::IsCancelled(status) && cancellation->IsCancelled()) return cancellation->status();
    if (!status.ok()) return status;
    if (results != nullptr) *results = *std::move(outcome->results);
    return absl::OkStatus();
  }
  // A thread that has just worked polls this long for more: about what it costs to be woken.
  static constexpr int kSpinMicros = 40;

  ThreadPool pool_;
  RealFileSystem real_files_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::optional<StepEngine> engine_;
  Cancellation session_;
  absl::Mutex mutex_;
  absl::CondVar idle_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

StatusOr<std::unique_ptr<Session>> NewDirectSession(const DirectOptions& options) {
  if (options.catalogue == nullptr) return InvalidArgument("A session needs a catalogue of ops");
  WEFT_RETURN_IF_ERROR(options.catalogue->status());
  return std::unique_ptr<Session>(std::make_unique<DirectSession>(options));
}

}  // namespace weft::session
