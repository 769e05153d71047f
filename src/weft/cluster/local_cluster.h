// SPDX-License-Identifier: Apache-2.0
// A cluster of this task alone: steps run here.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/cluster/master.h"
#include "weft/session/step_engine.h"

namespace weft::cluster {

// Thread-safe.
class LocalCluster : public ClusterAccess {
 public:
  // `engine` says what every session runs with; its devices are those that sessions share.
  LocalCluster(DeviceName task, session::EngineOptions engine);

  StatusOr<std::unique_ptr<StepRunner>> OpenSession(const std::string& handle,
                                                    const tensorflow::ConfigProto& config,
                                                    Cancellation* cancellation) override;
  std::vector<DeviceAttributes> LocalDevices() override;
  StatusOr<std::vector<DeviceAttributes>> RemoteDevices(const std::vector<std::string>& filters,
                                                        Cancellation* cancellation) override;
  Status Cleanup(const std::vector<std::string>& containers, const std::vector<std::string>& filters,
                 Cancellation* cancellation) override;

 private:
  const DeviceName task_;
  const session::EngineOptions engine_;
};

}  // namespace weft::cluster
