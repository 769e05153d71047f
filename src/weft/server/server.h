// SPDX-License-Identifier: Apache-2.0
// One task of a cluster: its devices, its master, its port.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"

#include "base/status.h"
#include "net/job_identity.h"
#include "weft/cluster/cluster_spec.h"
#include "weft/kernel/op_spec.h"
#include "weft/membership/roster.h"

namespace tensorflow {
class ConfigProto;
}

namespace weft::server {

class KeptVariables;

struct ServerOptions {
  cluster::ClusterSpec cluster;
  cluster::TaskId task;
  const Catalogue* catalogue = nullptr;  // required; must outlive the server
  DeviceFactory* devices = nullptr;      // required; the same
  // The host to listen at. Empty: loopback if the task's own address is loopback, else every
  // interface.
  std::string bind;
  // This process takes the task over from the one that has it now, at its address in the cluster,
  // and answers at "host:port" instead, port 0 for any; empty: the task begins here.
  std::string take_over;
  // Where that process is, "host:port", where the address in the cluster may lead elsewhere by now;
  // when nobody is there, the task begins here. Empty: at its address in the cluster.
  std::string take_over_from;
  // HandOver waits at most so long for a process that begins to take the task over.
  absl::Duration hand_over_within;
  int data_port = 0;  // of the connections between tasks; 0: any
  // Keeps what this task's variables hold for the process that its supervisor starts after it;
  // null: they end with this one. Must outlive the server. Its memory is not lent: `share_memory`
  // is false.
  KeptVariables* kept = nullptr;
  // Where others reach that port, "host:port", where it is not the task's own host: behind a proxy
  // or a translation of addresses. Empty: there.
  std::string data_address;
  // What carries tensors between tasks, "tcp" or "ucx"; "auto" or empty: UCX where an adapter for
  // RDMA is here, TCP where none is or the tasks speak TLS. All tasks need the same.
  std::string transport;
  // Tensors for tasks on the same host are read in place from memory that both map.
  bool share_memory = true;
  // What the job's tasks show each other and demand of each other. Needed where the port is not on
  // loopback, unless `insecure`.
  std::optional<JobIdentity> identity;
  // Whoever reaches the port may run any graph here.
  bool insecure = false;
  // File ops stay under this directory. Empty: the working directory where the port is not on
  // loopback, else no limit.
  std::string root;
  int num_threads = 0;  // 0: the cores this process may use
  // Sessions of this task's master may place nodes on another device of a task than they ask for,
  // whatever their clients say.
  bool soft_placement = false;
  // Bytes of host memory that tensors may take, of the whole process; 0: what the control group
  // leaves, else the machine's.
  uint64_t memory_limit = 0;
  // Of sessions that say nothing themselves: who distributes graphs, "written", "auto" or
  // "required" (master/auto_distribution.h); empty: written.
  std::string distribution;
  // What the steps of this task's master cost is written to this file, for `weft plan`; where the
  // cluster has several tasks, the task's name is put into the file's. Empty: nowhere.
  std::string cost_file;
  // Another task from which no byte came for so long is lost; infinite: never while its connection
  // stands.
  absl::Duration lost_after = absl::Seconds(10);
  // Tasks tell each other which of them live (SWIM): one that stands still is lost in about two
  // seconds, and groups of ranks may shrink and grow.
  bool membership = false;
  // Where this task keeps what it knows of leased data, if it is the one that does; empty: in
  // memory.
  std::string lease_folder;
  // Of groups of ranks that this task leads: which algorithms were measured to be the fastest
  // (`weft bench all-reduce --table`). Empty, or a file that cannot be read, which is said: a rule.
  std::string collective_table;
  // A session that nobody used for this long is closed.
  absl::Duration session_lease = absl::Hours(12);
  // A wait older than this is reported in the log, and again whenever its age has doubled.
  absl::Duration report_waits_after = absl::Seconds(30);
  // Loopback port of /healthz, /metrics and /waits; 0 for any, -1 for none.
  int status_port = -1;
};

// Sets what is empty from WEFT_TASK_TLS (a folder: ReadJobIdentity), WEFT_INSECURE ("1"),
// WEFT_COLLECTIVE_TABLE (which TF_DETERMINISTIC_OPS=1 takes back),
// WEFT_COST_FILE, WEFT_DISTRIBUTION, WEFT_FILE_ROOT, WEFT_TAKE_OVER, WEFT_TAKE_OVER_FROM,
// WEFT_HAND_OVER (seconds), WEFT_LEASE_FOLDER,
// WEFT_MEMBERSHIP ("1"), WEFT_TRANSPORT and WEFT_ELASTIC, which say it to programs that have no
// flags for it; an insecure server needs no identity. InvalidArgument for a folder that holds none.
Status CompleteFromEnvironment(ServerOptions* options);

// Thread-safe. The destructor shuts it down.
class Server {
 public:
  // Listens when it returns. InvalidArgument for a task that is not in the cluster, Unavailable for
  // a port that cannot be had; both name it. FailedPrecondition for a port that others reach
  // without an identity.
  static StatusOr<std::unique_ptr<Server>> Start(const ServerOptions& options);
  virtual ~Server() = default;

  // The port it listens at: the task's, or the one chosen for port 0.
  virtual int port() const = 0;
  virtual int status_port() const = 0;  // -1 for none
  // "grpc://host:port"
  virtual std::string target() const = 0;
  // Which tasks live as this one sees it, itself among them, in order of their names; dead ones are
  // there with their state. Empty without `membership`.
  virtual std::vector<membership::Member> Members() = 0;
  // Whether others wait to come into the open group of this key, or it is over.
  virtual bool HasGroupChanged(int32_t group_key) = 0;
  // Of a task that others use: blocks until another process has taken it over, nobody uses it any
  // more, or `hand_over_within` is over and none is about to; at once where that is zero. Comes
  // before Shutdown.
  virtual void HandOver() = 0;
  // Refuses new calls, cancels sessions, waits at most `grace` for running calls. Once; blocks.
  virtual void Shutdown(absl::Duration grace) = 0;
};

}  // namespace weft::server
