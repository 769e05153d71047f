// SPDX-License-Identifier: Apache-2.0
// The page of jobs, nodes and experiments, over an API server.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/status.h"
#include "net/http_server.h"
#include "platform/store/kubernetes/kubernetes_store.h"

namespace weft::platform {

// Thread-safe.
class PageServer {
 public:
  // The connection of whoever shows this key; an error when it is not known. May block.
  using OpenStore =
      std::function<StatusOr<std::shared_ptr<KubernetesStore>>(const std::string& key)>;

  struct Options {
    SocketAddress address = {"127.0.0.1", 0};
    std::vector<std::string> hosts;  // names that browsers may call it by, beside localhost
    std::shared_ptr<TlsConfig> tls;  // null: plain text
    OpenStore open;
    std::string namespace_name;  // that is shown first; empty: all
    bool is_read_only = false;
  };
  // Listens when this returns.
  static StatusOr<std::unique_ptr<PageServer>> Start(Options options);
  // Ends all answers.
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const;

 private:
  class Requests;
  PageServer();
  std::unique_ptr<Requests> requests_;
  std::unique_ptr<HttpServer> http_;
};

// For one user: whoever knows `key` gets `store`.
PageServer::OpenStore OpenWithKey(std::string key, std::shared_ptr<KubernetesStore> store);

// For many: the key is a token of the cluster that `access` leads to, whose own rights count. The
// latest hundreds of connections are kept.
PageServer::OpenStore OpenWithToken(ClusterAccess access, const Clock* clock);

}  // namespace weft::platform
