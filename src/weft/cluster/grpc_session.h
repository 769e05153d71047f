// SPDX-License-Identifier: Apache-2.0
// A program's session on a cluster, over MasterService.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/kernel/op_spec.h"
#include "weft/session/session.h"

namespace weft::cluster {

struct SessionOptions {
  // "" runs in this process; "grpc://host:port" at that task's master. A master of this process is
  // called without a socket.
  std::string target;
  // Tasks the session needs ("/job:ps", "/job:worker/task:0"); empty: all of the cluster.
  std::vector<std::string> device_filters;
  bool soft_placement = true;
  // How long set-up and control calls may take when nobody answers.
  absl::Duration connect_timeout = absl::Seconds(60);
  // Dial even a master of this process.
  bool always_dial = false;
  // For the empty target; null: the standard catalogue.
  const Catalogue* catalogue = nullptr;
  // For the empty target; null: one CPU device.
  DeviceFactory* devices = nullptr;
};

// A session at the target. InvalidArgument for a target that is neither form. A cluster is not
// contacted before the first call; Unavailable then names the address.
StatusOr<std::unique_ptr<session::Session>> NewSession(const SessionOptions& options);

// Closes all sessions at the target's master and forgets the variables of `containers` (empty: the
// default one) on every task.
Status ResetCluster(const SessionOptions& options, const std::vector<std::string>& containers);

}  // namespace weft::cluster
