// SPDX-License-Identifier: Apache-2.0
#include "weft/master/task_cluster.h"

#include <utility>

#include "base/log.h"

namespace weft::master {

StatusOr<std::unique_ptr<StepRunner>> TaskCluster::OpenSession(
    const std::string& handle, const tensorflow::ConfigProto& config) {
  SessionEnvironment environment = environment_;
  if (config.operation_timeout_in_ms() > 0) {
    // A little less than the client's own, so that it is told who is missing.
    environment.patience = 0.9 * absl::Milliseconds(config.operation_timeout_in_ms());
  }
  auto session = std::make_unique<ClusterSession>(handle, config, std::move(environment));
  WEFT_RETURN_IF_ERROR(session->Open());
  return std::unique_ptr<StepRunner>(std::move(session));
}

std::vector<DeviceAttributes> TaskCluster::LocalDevices() { return environment_.worker->devices(); }

StatusOr<std::vector<DeviceAttributes>> TaskCluster::RemoteDevices(
    const std::vector<std::string>& filters, Cancellation* cancellation) {
  cluster::TaskDirectory& directory = *environment_.directory;
  WEFT_ASSIGN_OR_RETURN(
      const std::vector<cluster::TaskStatus> tasks,
      directory.GetStatus(directory.OthersMatching(filters), environment_.patience, cancellation));
  std::vector<DeviceAttributes> devices;
  for (const cluster::TaskStatus& task : tasks) {
    devices.insert(devices.end(), task.devices.begin(), task.devices.end());
  }
  return devices;
}

Status TaskCluster::Cleanup(const std::vector<std::string>& containers,
                            const std::vector<std::string>& filters, Cancellation* cancellation) {
  environment_.worker->Cleanup(containers);
  cluster::TaskDirectory& directory = *environment_.directory;
  for (const cluster::TaskId& task : directory.OthersMatching(filters)) {
    const Status cleaned = directory.CleanupAll(task, containers, cancellation);
    // A task that is away has lost its containers anyway.
    if (absl::IsUnavailable(cleaned) || absl::IsDeadlineExceeded(cleaned)) {
      WEFT_LOG(WARNING) << "Reset could not reach " << task.ToString();
    } else {
      WEFT_RETURN_IF_ERROR(cleaned);
    }
  }
  return absl::OkStatus();
}

}  // namespace weft::master
