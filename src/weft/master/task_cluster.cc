// SPDX-License-Identifier: Apache-2.0
#include "weft/master/task_cluster.h"

#include <utility>

#include "base/log.h"

namespace weft::master {

namespace {

// For tasks that a program names: it found them all itself, so that one which does not answer is
// gone.
constexpr absl::Duration kProgramPatience = absl::Seconds(10);

// InvalidArgument unless the tasks that a session names are those of this cluster.
Status CheckSameCluster(const cluster::ClusterSpec& named, const cluster::ClusterSpec& own) {
  for (const auto& [task, address] : named.tasks()) {
    const auto found = own.tasks().find(task);
    if (found != own.tasks().end() && found->second == address) continue;
    return InvalidArgument(
        "The session's cluster (ConfigProto.cluster_def) has ", task.ToString(), " at ", address,
        ", but the server was started with ",
        found == own.tasks().end() ? "no such task" : absl::StrCat("it at ", found->second),
        ". A session can name tasks of its server's own cluster; start the servers with it");
  }
  return absl::OkStatus();
}

}  // namespace

Status TaskCluster::CheckCluster(const tensorflow::ConfigProto& config) const {
  if (config.cluster_def().job_size() == 0) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const cluster::ClusterSpec named,
                        cluster::ClusterSpec::FromProto(config.cluster_def()));
  return CheckSameCluster(named, environment_.directory->cluster());
}

StatusOr<std::unique_ptr<StepRunner>> TaskCluster::OpenSession(
    const std::string& handle, const tensorflow::ConfigProto& config,
    std::shared_ptr<cluster::TaskDirectory> tasks) {
  WEFT_RETURN_IF_ERROR(CheckCluster(config));
  SessionEnvironment environment = environment_;
  if (tasks != nullptr) {
    environment.directory = tasks.get();
    environment.own_tasks = std::move(tasks);
    environment.patience = kProgramPatience;
  }
  if (config.operation_timeout_in_ms() > 0) {
    // A little less than the client's own, so that it is told who is missing.
    environment.patience = 0.9 * absl::Milliseconds(config.operation_timeout_in_ms());
  }
  WEFT_ASSIGN_OR_RETURN(const DistributionWish distribution, DistributionOf(config));
  auto session =
      std::make_unique<ClusterSession>(handle, config, std::move(environment), distribution);
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
