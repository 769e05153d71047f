// SPDX-License-Identifier: Apache-2.0
#include "weft/master/master.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"

#include "base/log.h"
#include "weft/graph/device_name.h"

namespace weft::master {
namespace {

std::string NewHandle() {
  std::random_device device;
  const uint64_t number = (uint64_t{device()} << 32) | device();
  return absl::StrFormat("%016x", number);
}

Status CheckFilters(const std::vector<std::string>& filters) {
  for (const std::string& filter : filters) {
    StatusOr<DeviceName> name = DeviceName::Parse(filter);
    if (!name.ok()) return Annotate(name.status(), "Device filter");
  }
  return absl::OkStatus();
}

Status CheckConfig(const tensorflow::ConfigProto& config) {
  if (config.use_per_session_threads() || config.session_inter_op_thread_pool_size() > 0) {
    return InvalidArgument("Distributed session does not support session thread pool options.");
  }
  return CheckFilters({config.device_filters().begin(), config.device_filters().end()});
}

}  // namespace

Master::Master(MasterOptions options, ClusterAccess* cluster, TimerQueue* timers)
    : options_(std::move(options)), cluster_(cluster), timers_(timers) {
  absl::MutexLock lock(&mutex_);
  ScheduleCollection();
}

Master::~Master() { Shutdown(); }

void Master::ScheduleCollection() {
  const absl::Duration period =
      std::clamp(options_.lease / 10, absl::Milliseconds(10), absl::Minutes(10));
  collection_ = timers_->Schedule(period, [this] { CollectExpired(); });
}

void Master::CollectExpired() {
  std::vector<std::shared_ptr<MasterSession>> expired;
  {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) return;
    for (auto it = sessions_.begin(); it != sessions_.end();) {
      if (it->second->idle() > options_.lease) {
        expired.push_back(std::move(it->second));
        it = sessions_.erase(it);
      } else {
        ++it;
      }
    }
    ScheduleCollection();
  }
  for (const auto& session : expired) {
    WEFT_LOG(INFO) << "Session " << session->handle() << " was not used for "
                   << absl::FormatDuration(options_.lease) << " and is closed";
    session->Close(Aborted("The session was not used for too long"), [] {});
  }
}

StatusOr<std::string> Master::CreateSession(GraphDef graph, const tensorflow::ConfigProto& config,
                                            Cancellation* cancellation,
                                            std::shared_ptr<cluster::TaskDirectory> tasks) {
  tensorflow::ConfigProto merged = options_.default_config;
  merged.MergeFrom(config);
  WEFT_RETURN_IF_ERROR(CheckConfig(merged));
  std::string handle = NewHandle();
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<StepRunner> runner,
                        cluster_->OpenSession(handle, merged, std::move(tasks)));
  auto session = std::make_shared<MasterSession>(handle, std::move(merged), std::move(runner),
                                                 timers_, options_.cost_file);
  WEFT_RETURN_IF_ERROR(session->Create(std::move(graph), cancellation));
  absl::MutexLock lock(&mutex_);
  if (shut_down_) return Unavailable("The server is shutting down");
  if (sessions_.size() >= options_.max_sessions) {
    return ResourceExhausted("Too many sessions are open here: ", sessions_.size());
  }
  sessions_.emplace(handle, std::move(session));
  return handle;
}

StatusOr<std::shared_ptr<MasterSession>> Master::Find(const std::string& handle) {
  absl::MutexLock lock(&mutex_);
  const auto found = sessions_.find(handle);
  if (found == sessions_.end()) return Aborted("Session ", handle, " is not found.");
  return found->second;
}

Status Master::CloseSession(const std::string& handle, absl::AnyInvocable<void()> closed) {
  std::shared_ptr<MasterSession> session;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = sessions_.find(handle);
    if (found == sessions_.end()) {
      return Aborted("Session ", handle, " is not found. Possibly, this master has restarted.");
    }
    session = std::move(found->second);
    sessions_.erase(found);
  }
  session->Close(Cancelled("Step was cancelled by an explicit call to `Session::Close()`."),
                 std::move(closed));
  return absl::OkStatus();
}

Status Master::Reset(const std::vector<std::string>& containers,
                     const std::vector<std::string>& filters, Cancellation* cancellation) {
  WEFT_RETURN_IF_ERROR(CheckFilters(filters));
  std::map<std::string, std::shared_ptr<MasterSession>> sessions;
  {
    absl::MutexLock lock(&mutex_);
    sessions.swap(sessions_);
  }
  for (const auto& [handle, session] : sessions) {
    session->Close(Aborted("The session was ended by Reset"), [] {});
  }
  return cluster_->Cleanup(containers, filters, cancellation);
}

StatusOr<Master::Devices> Master::ListDevices(const std::string& handle,
                                              Cancellation* cancellation) {
  std::vector<std::string> filters;
  if (!handle.empty()) {
    StatusOr<std::shared_ptr<MasterSession>> session = Find(handle);
    if (!session.ok()) {
      return InvalidArgument("Session ", handle,
                             " is not found. Possibly, this master has restarted.");
    }
    const auto& asked = (*session)->config().device_filters();
    filters.assign(asked.begin(), asked.end());
  }
  Devices devices;
  devices.local = cluster_->LocalDevices();
  WEFT_ASSIGN_OR_RETURN(devices.remote, cluster_->RemoteDevices(filters, cancellation));
  return devices;
}

void Master::Shutdown() {
  std::map<std::string, std::shared_ptr<MasterSession>> sessions;
  TimerQueue::Id collection = 0;
  {
    absl::MutexLock lock(&mutex_);
    if (shut_down_) return;
    shut_down_ = true;
    sessions.swap(sessions_);
    collection = std::exchange(collection_, 0);
  }
  timers_->Cancel(collection);
  for (const auto& [handle, session] : sessions) {
    session->Close(Unavailable("The server is shutting down"), [] {});
  }
}

size_t Master::num_sessions() const {
  absl::MutexLock lock(&mutex_);
  return sessions_.size();
}

}  // namespace weft::master
