// SPDX-License-Identifier: Apache-2.0
#include "weft/client/local_session.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

#include "proto/tensorflow/config.pb.h"

namespace weft::client {
namespace {

class LocalSession final : public session::Session {
 public:
  LocalSession(std::shared_ptr<master::LocalMaster> master, SessionOptions options)
      : master_(std::move(master)), options_(std::move(options)) {}
  ~LocalSession() override { Close().IgnoreError(); }

  Status Extend(const GraphDef& graph) override {
    return Inside([&](master::Master& master) -> Status {
      absl::MutexLock lock(&mutex_);
      if (closed_) return FailedPrecondition("Session has been closed.");
      if (handle_.empty()) return CreateLocked(master, graph);
      WEFT_ASSIGN_OR_RETURN(const auto session, master.Find(handle_));
      WEFT_ASSIGN_OR_RETURN(version_, session->Extend(graph, version_, &cancellation_));
      return absl::OkStatus();
    });
  }

  Status Run(const session::RunOptions& options, const std::vector<step::Feed>& feeds,
             const std::vector<std::string>& fetches, const std::vector<std::string>& targets,
             std::vector<Tensor>* results, step::RunMetadata* metadata) override {
    return Inside([&](master::Master& master) -> Status {
      WEFT_ASSIGN_OR_RETURN(const std::string handle, Handle(master));
      WEFT_ASSIGN_OR_RETURN(const auto session, master.Find(handle));
      const master::StepTimer timer(&master_->metrics());
      StatusOr<master::StepResult> result =
          RunAndWait(*session, {.feeds = feeds,
                                .fetches = fetches,
                                .targets = targets,
                                .timeout = options.timeout,
                                .trace = options.trace && metadata != nullptr,
                                .partition_graphs = options.partition_graphs && metadata != nullptr,
                                .caller = &cancellation_});
      timer.End(result.status());
      WEFT_RETURN_IF_ERROR(result.status());
      if (metadata != nullptr) *metadata = std::move(result->metadata);
      if (results != nullptr) *results = std::move(result->fetches);
      return absl::OkStatus();
    });
  }

  StatusOr<std::vector<DeviceAttributes>> ListDevices() override {
    std::vector<DeviceAttributes> all;
    WEFT_RETURN_IF_ERROR(Inside([&](master::Master& master) -> Status {
      WEFT_ASSIGN_OR_RETURN(const std::string handle, Handle(master));
      WEFT_ASSIGN_OR_RETURN(master::Master::Devices devices,
                            master.ListDevices(handle, &cancellation_));
      all = std::move(devices.local);
      all.insert(all.end(), devices.remote.begin(), devices.remote.end());
      return absl::OkStatus();
    }));
    return all;
  }

  Status Close() override {
    std::string handle;
    {
      absl::MutexLock lock(&mutex_);
      if (closed_) return absl::OkStatus();
      closed_ = true;
      handle = handle_;
    }
    cancellation_.Cancel(
        Cancelled("Step was cancelled by an explicit call to `Session::Close()`."));
    if (handle.empty()) return absl::OkStatus();
    const Status closed = Inside([&](master::Master& master) -> Status {
      auto ended =
          std::make_shared<absl::Notification>();  // shared with the callback, which may be late
      WEFT_RETURN_IF_ERROR(master.CloseSession(handle, [ended] { ended->Notify(); }));
      ended->WaitForNotificationWithTimeout(absl::Seconds(10));
      return absl::OkStatus();
    });
    // With its master the session went too.
    return absl::IsUnavailable(closed) ? Status() : closed;
  }

 private:
  template <typename Body>
  Status Inside(Body body) {
    master::Master* master = master_->Enter();
    if (master == nullptr) {
      return Unavailable("The server of this process at ", options_.target, " has been shut down");
    }
    const Status status = body(*master);
    master_->Leave();
    return status;
  }

  static StatusOr<master::StepResult> RunAndWait(master::MasterSession& session,
                                                 master::SessionStep step) {
    struct Outcome {
      absl::Notification ended;
      StatusOr<master::StepResult> result = Internal("The step gave no answer");
    };
    auto outcome = std::make_shared<Outcome>();  // outlives a callback that is still leaving Notify
    session.Run(std::move(step), [outcome](StatusOr<master::StepResult> result) {
      outcome->result = std::move(result);
      outcome->ended.Notify();
    });
    outcome->ended.WaitForNotification();
    return std::move(outcome->result);
  }

  Status CreateLocked(master::Master& master, const GraphDef& graph)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    tensorflow::ConfigProto config;
    config.set_allow_soft_placement(options_.soft_placement);
    for (const std::string& filter : options_.device_filters) config.add_device_filters(filter);
    WEFT_ASSIGN_OR_RETURN(handle_, master.CreateSession(graph, config, &cancellation_));
    version_ = 0;
    return absl::OkStatus();
  }

  StatusOr<std::string> Handle(master::Master& master) {
    absl::MutexLock lock(&mutex_);
    if (closed_) return FailedPrecondition("Session has been closed.");
    if (handle_.empty()) WEFT_RETURN_IF_ERROR(CreateLocked(master, {}));
    return handle_;
  }

  const std::shared_ptr<master::LocalMaster> master_;  // shared with the server's registration
  const SessionOptions options_;
  Cancellation cancellation_;
  absl::Mutex mutex_;
  std::string handle_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<session::Session> NewLocalSession(std::shared_ptr<master::LocalMaster> master,
                                                  const SessionOptions& options) {
  return std::make_unique<LocalSession>(std::move(master), options);
}

}  // namespace weft::client
