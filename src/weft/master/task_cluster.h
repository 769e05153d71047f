// SPDX-License-Identifier: Apache-2.0
// The cluster as this task's master sees it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/master/cluster_session.h"
#include "weft/master/master.h"

namespace weft::master {

// Thread-safe.
class TaskCluster final : public ClusterAccess {
 public:
  explicit TaskCluster(SessionEnvironment environment) : environment_(std::move(environment)) {}

  StatusOr<std::unique_ptr<StepRunner>> OpenSession(
      const std::string& handle, const tensorflow::ConfigProto& config,
      std::shared_ptr<cluster::TaskDirectory> tasks) override;
  std::vector<DeviceAttributes> LocalDevices() override;
  StatusOr<std::vector<DeviceAttributes>> RemoteDevices(const std::vector<std::string>& filters,
                                                        Cancellation* cancellation) override;
  Status Cleanup(const std::vector<std::string>& containers,
                 const std::vector<std::string>& filters, Cancellation* cancellation) override;

 private:
  // That the cluster of the configuration, if it has one, is this one.
  Status CheckCluster(const tensorflow::ConfigProto& config) const;

  const SessionEnvironment environment_;
};

}  // namespace weft::master
