// SPDX-License-Identifier: Apache-2.0
// Where a program's session runs and what it asks for.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"

#include "weft/kernel/op_spec.h"

namespace weft::client {

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

}  // namespace weft::client
