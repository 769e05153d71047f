// SPDX-License-Identifier: Apache-2.0
#include "weft/cluster/local_masters.h"

#include <map>
#include <utility>

#include "absl/synchronization/notification.h"

namespace weft::cluster {
namespace {

struct Registry {
  absl::Mutex mutex;
  std::map<std::string, std::shared_ptr<LocalMaster>> masters ABSL_GUARDED_BY(mutex);
};
Registry& TheRegistry() {
  static auto* const registry = new Registry();
  return *registry;
}

class LocalMasterSession final : public session::Session {
 public:
  LocalMasterSession(std::shared_ptr<LocalMaster> master, SessionOptions options)
      : master_(std::move(master)), options_(std::move(options)) {}
  ~LocalMasterSession() override { Close().IgnoreError(); }

  Status Extend(const GraphDef& graph) override {
    return Inside([&](Master& master) -> Status {
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
    return Inside([&](Master& master) -> Status {
      WEFT_ASSIGN_OR_RETURN(const std::string handle, Handle(master));
      WEFT_ASSIGN_OR_RETURN(const auto session, master.Find(handle));
      const StepTimer timer(&master_->metrics());
      StatusOr<StepResult> result =
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
    WEFT_RETURN_IF_ERROR(Inside([&](Master& master) -> Status {
      WEFT_ASSIGN_OR_RETURN(const std::string handle, Handle(master));
      WEFT_ASSIGN_OR_RETURN(Master::Devices devices, master.ListDevices(handle, &cancellation_));
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
    const Status closed = Inside([&](Master& master) -> Status {
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
    Master* master = master_->Enter();
    if (master == nullptr) {
      return Unavailable("The server of this process at ", options_.target, " has been shut down");
    }
    const Status status = body(*master);
    master_->Leave();
    return status;
  }

  static StatusOr<StepResult> RunAndWait(MasterSession& session, SessionStep step) {
    struct Outcome {
      absl::Notification ended;
      StatusOr<StepResult> result = Internal("The step gave no answer");
    };
    auto outcome = std::make_shared<Outcome>();  // outlives a callback that is still leaving Notify
    session.Run(std::move(step), [outcome](StatusOr<StepResult> result) {
      outcome->result = std::move(result);
      outcome->ended.Notify();
    });
    outcome->ended.WaitForNotification();
    return std::move(outcome->result);
  }

  Status CreateLocked(Master& master, const GraphDef& graph) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    tensorflow::ConfigProto config;
    config.set_allow_soft_placement(options_.soft_placement);
    for (const std::string& filter : options_.device_filters) config.add_device_filters(filter);
    WEFT_ASSIGN_OR_RETURN(handle_, master.CreateSession(graph, config, &cancellation_));
    version_ = 0;
    return absl::OkStatus();
  }

  StatusOr<std::string> Handle(Master& master) {
    absl::MutexLock lock(&mutex_);
    if (closed_) return FailedPrecondition("Session has been closed.");
    if (handle_.empty()) WEFT_RETURN_IF_ERROR(CreateLocked(master, {}));
    return handle_;
  }

  const std::shared_ptr<LocalMaster> master_;  // shared with the server's registration
  const SessionOptions options_;
  Cancellation cancellation_;
  absl::Mutex mutex_;
  std::string handle_ ABSL_GUARDED_BY(mutex_);
  int64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

Master* LocalMaster::Enter() {
  absl::MutexLock lock(&mutex_);
  if (master_ != nullptr) ++inside_;
  return master_;
}

void LocalMaster::Leave() {
  absl::MutexLock lock(&mutex_);
  --inside_;
}

void LocalMaster::Retire() {
  absl::MutexLock lock(&mutex_);
  master_ = nullptr;
  const auto empty = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return inside_ == 0; };
  mutex_.Await(absl::Condition(&empty));
}

LocalMasterRegistration::LocalMasterRegistration(std::string target, Master* master,
                                                 StepMetrics* metrics)
    : target_(std::move(target)), master_(std::make_shared<LocalMaster>(master, metrics)) {
  Registry& registry = TheRegistry();
  absl::MutexLock lock(&registry.mutex);
  registry.masters[target_] = master_;
}

LocalMasterRegistration::~LocalMasterRegistration() {
  {
    Registry& registry = TheRegistry();
    absl::MutexLock lock(&registry.mutex);
    const auto found = registry.masters.find(target_);
    if (found != registry.masters.end() && found->second == master_) registry.masters.erase(found);
  }
  master_->Retire();
}

std::shared_ptr<LocalMaster> FindLocalMaster(const std::string& target) {
  Registry& registry = TheRegistry();
  absl::MutexLock lock(&registry.mutex);
  const auto found = registry.masters.find(target);
  return found == registry.masters.end() ? nullptr : found->second;
}

std::unique_ptr<session::Session> NewLocalMasterSession(std::shared_ptr<LocalMaster> master,
                                                        const SessionOptions& options) {
  return std::make_unique<LocalMasterSession>(std::move(master), options);
}

}  // namespace weft::cluster
