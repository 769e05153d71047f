// SPDX-License-Identifier: Apache-2.0
// The port of `weft node` by which an API server reaches its pods, as it reaches those of a
// kubelet.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "base/threads.h"
#include "base/timers.h"
#include "net/http_server.h"
#include "platform/apiserver/pod_access.h"
#include "platform/apiserver/remote_calls.h"
#include "platform/store/object_store.h"

namespace weft::platform {

struct NodePortOptions {
  int port = -1;                      // below zero: none; 0: any
  std::string client_authority_file;  // who must have signed the API server's client certificate
  std::string client_name = "kube-apiserver-kubelet-client";  // whose it must be
  std::string address;      // by which the API server comes; empty: found by asking the system
  std::string certificate;  // files; empty: made anew, signed by itself
  std::string key;
  std::string server;      // URL of the API server
  std::string log_folder;  // of the pods
};

// Serves logs, exec, attach and port-forward, and /healthz, to the API server alone, by the paths
// and parameters of a kubelet, and tells it of the port. Thread-safe; borrows store, pods and
// clock.
class NodePort {
 public:
  // InvalidArgument without an authority: anybody could read. `find_pod` looks no farther than this
  // machine.
  static StatusOr<std::unique_ptr<NodePort>> Start(const NodePortOptions& options,
                                                   ObjectStore* store, PodLookup find_pod,
                                                   PodAccess* pods, const Clock* clock);
  // Writes the port and the address into the node's status. NotFound while there is no node.
  Status Tell(const std::string& node) const;

 private:
  NodePort(const NodePortOptions& options, ObjectStore* store, PodLookup find_pod, PodAccess* pods,
           const Clock* clock);
  void Answer(HttpRequest http, std::shared_ptr<HttpReply> reply);

  const std::string log_folder_;
  ObjectStore* const store_;
  const PodLookup find_pod_;
  const Clock* const clock_;
  std::string address_;
  TimerQueue timers_;
  RemoteCalls calls_;
  ThreadPool pool_;
  std::unique_ptr<HttpServer> server_;  // last: its handler uses all of the above
};

}  // namespace weft::platform
