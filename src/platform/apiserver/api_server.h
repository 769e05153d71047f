// SPDX-License-Identifier: Apache-2.0
// The Kubernetes REST dialect over an ObjectStore, so that kubectl and every other client work on a
// laptop.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/status.h"
#include "net/certificate.h"
#include "net/http_server.h"
#include "platform/apiserver/pod_access.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Where the log of a pod's container lies, in lines "2026-11-21T12:20:02.123456Z text".
// `is_previous`: of the run before its last restart. NotFound or FailedPrecondition say why there
// is none.
using LogPath = std::function<StatusOr<std::string>(const Json& pod, const std::string& container,
                                                    bool is_previous)>;

// Discovery, OpenAPI, tables, watches, patches, logs, programs in pods; everyone must show the
// token. Thread-safe.
class ApiServer {
 public:
  struct Options {
    ObjectStore* store = nullptr;  // borrowed, as is the clock
    const Clock* clock = nullptr;
    SocketAddress address = {"127.0.0.1", 0};
    Identity identity;          // of the TLS port
    std::string token;          // who knows it may do everything; nodes: node_identity.h
    LogPath log_path;           // null: no logs
    PodAccess* pods = nullptr;  // borrowed; null: no exec, no port-forward, no metrics
    int threads = 4;
  };
  // Listens when this returns.
  static StatusOr<std::unique_ptr<ApiServer>> Start(Options options);
  // Ends all requests. The store must still live.
  ~ApiServer();
  ApiServer(const ApiServer&) = delete;
  ApiServer& operator=(const ApiServer&) = delete;

  int port() const;

 private:
  class Requests;
  ApiServer();
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<HttpServer> http_;
};

}  // namespace weft::platform
