// SPDX-License-Identifier: Apache-2.0
#include "weft/session/direct_session.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

#include "base/exceptions.h"
#include "base/files.h"
#include "base/threads.h"
#include "base/timers.h"
#include "base/waits.h"
#include "weft/collective/engine.h"
#include "weft/collective/local_network.h"
#include "weft/kernel/collective_runner.h"
#include "weft/rendezvous/step_rendezvous.h"
#include "weft/step/part_run.h"
#include "weft/step/session_graph.h"
#include "weft/step/task_part.h"
#include "weft/storage/object_files.h"

namespace weft::session {
namespace {

// A signature as first seen, compiled.
struct Executable {
  std::vector<PartialShape> feed_shapes;
  std::vector<PartialShape> made_for;
  std::shared_ptr<const step::TaskPart> part;  // shared with running steps
};

// One task without a wire.
class DirectSession final : public Session {
 public:
  explicit DirectSession(const DirectOptions& options)
      : catalogue_(*options.catalogue),
        part_options_{
            .fold = options.fold, .fuse = options.fuse, .deterministic = options.deterministic},
        pool_("weft-compute", options.num_threads),
        own_waits_(&clock_),
        watchdog_(&own_waits_),
        environment_{.pool = &pool_,
                     .files = options.files != nullptr ? options.files : &real_files_,
                     .waits = options.waits != nullptr ? options.waits : &own_waits_,
                     .single_threaded = pool_.num_threads() == 1},
        place_{.kernels = &options.catalogue->kernels(), .soft = options.soft_placement} {
    if (options.waits == nullptr) watchdog_.Start();
  }

  Status MakeDevices(DeviceFactory& factory) {
    WEFT_ASSIGN_OR_RETURN(devices_, factory.Make(task_, &pool_));
    if (devices_.empty()) return InvalidArgument("A session needs a device, its factory made none");
    std::vector<Device*> devices;
    for (const auto& device : devices_) {
      WEFT_ASSIGN_OR_RETURN(DeviceName name, DeviceName::Parse(device->name()));
      place_.devices.push_back(std::move(name));
      OfferCollectives(device.get(), &collectives_);
      devices.push_back(device.get());
    }
    place_.default_device = place_.devices.front();
    session_devices_ = step::SessionDevices(std::move(devices));
    graph_.emplace(&catalogue_.ops(), place_.default_device.ToString());
    return absl::OkStatus();
  }

  ~DirectSession() override {
    Close().IgnoreError();
    network_.Stop();
  }

  Status Extend(const GraphDef& graph) override {
    WEFT_RETURN_IF_ERROR(CheckOpen());
    return graph_->Extend(graph, place_);
  }

  Status Run(const RunOptions& options, const std::vector<Feed>& feeds,
             const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
             std::vector<Tensor>* results, RunMetadata* metadata) override {
    WEFT_RETURN_IF_ERROR(BeginStep());
    const Status status = RunStep(options, feeds, fetches, targets, results, metadata);
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

  Status RunStep(const RunOptions& options, const std::vector<Feed>& feeds,
                 const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
                 std::vector<Tensor>* results, RunMetadata* metadata) {
    WEFT_ASSIGN_OR_RETURN(const std::shared_ptr<const Executable> executable,
                          Prepare(feeds, fetches, targets));
    WEFT_RETURN_IF_ERROR(step::CheckFeeds(executable->feed_shapes, feeds));
    Cancellation cancellation(&session_);
    step::PartCall call{.part = executable->part,
                        .step = next_step_.fetch_add(1, std::memory_order_relaxed),
                        .cancellation = &cancellation,
                        .trace = metadata != nullptr && options.trace,
                        .partition_graphs = metadata != nullptr && options.partition_graphs};
    for (const Feed& feed : feeds) call.arguments.push_back(feed.second);
    if (executable->part->exchanges) {
      call.rendezvous = MakeRef<rendezvous::StepRendezvous>(call.step, task_.TaskName(), nullptr,
                                                            environment_.waits);
    }
    step::PartReport report = RunAndWait(std::move(call), options.timeout);
    if (metadata != nullptr) *metadata = std::move(report.metadata);
    // What waited when the step was ended knows only that; the caller wants to know why.
    if (absl::IsCancelled(report.status) && cancellation.IsCancelled())
      return cancellation.status();
    if (report.status.ok() && results != nullptr) *results = std::move(report.results);
    return report.status;
  }

  step::PartReport RunAndWait(step::PartCall call, absl::Duration timeout) {
    // Outlives the callback, which may still be leaving Notify when the wait ends.
    struct Outcome {
      absl::Notification ended;
      step::PartReport report;
    };
    auto outcome = std::make_shared<Outcome>();  // shared with the callback
    // The step may compute on this thread until its end.
    TimerQueue::Id timer = 0;
    if (timeout != absl::InfiniteDuration()) {
      try {
        timer = timers_.Schedule(timeout, [cancellation = call.cancellation, timeout] {
          cancellation->Cancel(
              DeadlineExceeded("Timed out waiting for a step of ", absl::FormatDuration(timeout)));
        });
      } catch (...) {
        return {.status = StatusOfException()};  // no memory for the thread that looks at the clock
      }
    }
    step::RunTaskPart(environment_, std::move(call), [outcome](step::PartReport report) {
      outcome->report = std::move(report);
      outcome->ended.Notify();
    });
    outcome->ended.WaitForNotification();
    if (timer != 0) timers_.Cancel(timer);
    return std::move(outcome->report);
  }

  StatusOr<std::shared_ptr<const Executable>> Prepare(const std::vector<Feed>& feeds,
                                                      const std::vector<std::string>& fetches,
                                                      const std::vector<std::string>& targets) {
    std::string key = step::SignatureKey(feeds, fetches, targets);
    std::shared_ptr<const Executable> known = Known(key, feeds);
    if (known != nullptr) return known;
    absl::MutexLock compiling(&compile_mutex_);  // steps of known signatures go on meanwhile
    known = Known(key, feeds);
    if (known != nullptr) return known;
    step::FeedShapes shapes = step::FeedShapes::kThese;
    {
      absl::MutexLock lock(&mutex_);
      if (executables_.contains(key)) {
        shapes = step::FeedShapes::kAny;
        key = step::AnyShapesKey(key);
      }
    }
    WEFT_ASSIGN_OR_RETURN(step::StepGraph cut,
                          graph_->Cut(step::SignatureOf(feeds, fetches, targets, shapes), place_));
    auto executable = std::make_shared<Executable>();
    executable->feed_shapes = std::move(cut.feed_shapes);
    executable->made_for = std::move(cut.made_for);
    WEFT_ASSIGN_OR_RETURN(executable->part,
                          step::CompileTaskPart(std::move(cut.graph), part_options_, catalogue_,
                                                session_devices_, &pool_));
    absl::MutexLock lock(&mutex_);
    executables_.emplace(std::move(key), executable);
    return executable;
  }

  // Null where none has been made that takes feeds of these shapes.
  std::shared_ptr<const Executable> Known(const std::string& key, const std::vector<Feed>& feeds) {
    absl::MutexLock lock(&mutex_);
    auto found = executables_.find(key);
    if (found != executables_.end() && !step::TakesShapes(found->second->made_for, feeds))
      found = executables_.find(step::AnyShapesKey(key));
    return found == executables_.end() ? nullptr : found->second;
  }

  const DeviceName task_{.job = "localhost", .replica = 0, .task = 0};
  const Catalogue& catalogue_;
  const step::PartOptions part_options_;
  // Outlives the threads, which may still work on a collective whose step has ended.
  collective::LocalNetwork network_{task_.TaskName(), &pool_};
  collective::Engine collectives_{collective::EngineOptions(), &network_};
  ComputePool pool_;
  storage::ObjectFileSystem real_files_{std::make_unique<RealFileSystem>()};
  RealClock clock_;
  TimerQueue timers_;  // ends steps that take too long
  WaitRegistry own_waits_;
  WaitWatchdog watchdog_;
  const step::TaskEnvironment environment_;
  compile::PlaceOptions place_;
  std::vector<std::unique_ptr<Device>> devices_;
  step::SessionDevices session_devices_;
  std::optional<step::SessionGraph> graph_;
  absl::Mutex compile_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::atomic<int64_t> next_step_{1};
  Cancellation session_;
  absl::Mutex mutex_;
  absl::CondVar idle_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_map<std::string, std::shared_ptr<const Executable>> executables_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<std::unique_ptr<Session>> NewDirectSession(const DirectOptions& options) {
  if (options.catalogue == nullptr) return InvalidArgument("A session needs a catalogue of ops");
  WEFT_RETURN_IF_ERROR(options.catalogue->status());
  if (options.devices == nullptr) return InvalidArgument("A session needs devices");
  auto session = std::make_unique<DirectSession>(options);
  WEFT_RETURN_IF_ERROR(session->MakeDevices(*options.devices));
  return std::unique_ptr<Session>(std::move(session));
}

}  // namespace weft::session
