// SPDX-License-Identifier: Apache-2.0
// One task of a cluster: its devices, its master, its port.
#pragma once

#include <memory>
#include <string>

#include "absl/time/time.h"

#include "base/status.h"
#include "weft/cluster/cluster_spec.h"
#include "weft/kernel/op_spec.h"

namespace tensorflow {
class ConfigProto;
}

namespace weft::cluster {

struct ServerOptions {
  ClusterSpec cluster;
  TaskId task;
  const Catalogue* catalogue = nullptr;  // required; must outlive the server
  // The host to listen at. Empty: loopback if the task's own address is loopback, else every
  // interface.
  std::string bind;
  int data_port = 0;  // of the connections between tasks; 0: any
  // Tensors for tasks on the same host are read in place from memory that both map.
  bool share_memory = true;
  // File ops stay under this directory. Empty: no limit.
  std::string root;
  int num_threads = 0;  // 0: the cores this process may use
  int num_cpu_devices = 1;
  // A session that nobody used for this long is closed.
  absl::Duration session_lease = absl::Hours(12);
  // A wait older than this is reported in the log, and again whenever its age has doubled.
  absl::Duration report_waits_after = absl::Seconds(30);
  // Loopback port of /healthz, /metrics and /waits; 0 for any, -1 for none.
  int status_port = -1;
};

// Thread-safe. The destructor shuts it down.
class Server {
 public:
  // Listens when it returns. InvalidArgument for a task that is not in the cluster, Unavailable for
  // a port that cannot be had; both name it.
  static StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  virtual ~Server() = default;

  // The port it listens at: the task's, or the one chosen for port 0.
  virtual int port() const = 0;
  virtual int status_port() const = 0;  // -1 for none
  // "grpc://host:port"
  virtual std::string target() const = 0;
  // Refuses new calls, cancels sessions, waits at most `grace` for running calls. Once; blocks.
  virtual void Shutdown(absl::Duration grace) = 0;
};

}  // namespace weft::cluster
