// SPDX-License-Identifier: Apache-2.0
// The port of `weft node` by which an API server fetches the logs of its pods.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/timers.h"
#include "net/http_server.h"
#include "platform/apiserver/log_stream.h"
#include "platform/store/object_store.h"

namespace weft::apps {

struct NodePortFlags {
  int port = -1;                      // below zero: none; 0: any
  std::string client_authority_file;  // who must have signed the API server's client certificate
  std::string client_name = "kube-apiserver-kubelet-client";  // whose it must be
  std::string address;      // by which the API server comes; empty: found by asking the system
  std::string certificate;  // files; empty: made anew, signed by itself
  std::string key;
};

// Serves GET /containerLogs/NAMESPACE/POD/CONTAINER and /healthz to the API server alone, and tells
// it of the port. Thread-safe; borrows store and clock.
class NodePort {
 public:
  // `server` is the API server's URL; logs lie in `log_folder`. InvalidArgument without an
  // authority: anybody could read. `find_pod` looks no farther than this machine.
  static StatusOr<std::unique_ptr<NodePort>> Start(
      const NodePortFlags& flags, const std::string& server, const std::string& log_folder,
      platform::ObjectStore* store, platform::PodLookup find_pod, const Clock* clock);
  // Writes the port and the address into the node's status. NotFound while there is no node.
  Status Tell(const std::string& node) const;

 private:
  NodePort(platform::ObjectStore* store, std::string address)
      : store_(store), address_(std::move(address)), pool_("logs", 2) {}

  platform::ObjectStore* const store_;
  const std::string address_;
  TimerQueue timers_;
  ThreadPool pool_;
  std::unique_ptr<HttpServer> server_;  // last: its handler uses all of the above
};

}  // namespace weft::apps
