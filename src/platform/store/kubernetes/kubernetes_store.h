// SPDX-License-Identifier: Apache-2.0
// The objects of a Kubernetes API server, or of `weft up`.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/cancellation.h"
#include "base/clock.h"
#include "net/http_client.h"
#include "platform/store/kubernetes/kubeconfig.h"
#include "platform/store/object_store.h"

namespace weft::platform {

struct LogOptions {
  std::string container;  // empty: the only one
  bool follows = false;
  bool is_previous = false;
  bool with_times = false;
  int64_t tail_lines = -1;
};

// Thread-safe; calls block. A read that the server could not answer (429, 502, 503, 504, no
// connection) is tried again, later each time, for half a minute; a write only where it had no
// effect (429, or no connection was made).
class KubernetesStore : public ObjectStore {
 public:
  static StatusOr<std::unique_ptr<KubernetesStore>> Connect(const ClusterAccess& access,
                                                            const Clock* clock);
  ~KubernetesStore() override;

  StatusOr<ObjectPtr> Get(const ResourceType& type, const ObjectName& name) override;
  StatusOr<ObjectList> List(const ResourceType& type, const ListOptions& options) override;
  // On a thread of its own. With an empty revision it lists, then watches; a watch that the server
  // ends goes on from where it was.
  StatusOr<std::unique_ptr<Watch>> StartWatch(const ResourceType& type, const WatchOptions& options,
                                              WatchSink sink) override;
  StatusOr<ObjectPtr> Create(const ResourceType& type, const std::string& namespace_name,
                             Json object, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Update(const ResourceType& type, Json object,
                             const WriteOptions& options) override;
  StatusOr<ObjectPtr> Patch(const ResourceType& type, const ObjectName& name, PatchKind kind,
                            const Json& patch, const WriteOptions& options) override;
  StatusOr<ObjectPtr> Delete(const ResourceType& type, const ObjectName& name,
                             const DeleteOptions& options) override;

  // The sink gets the log piece by piece.
  Status StreamLog(const ObjectName& pod, const LogOptions& options, const HttpClient::Sink& sink,
                   Cancellation* cancellation);
  // `path` as the server answers it: "/version".
  StatusOr<Json> GetPage(const std::string& path);

 private:
  class ServerWatch;
  KubernetesStore(std::unique_ptr<HttpClient> client, std::unique_ptr<Credentials> credentials,
                  const Clock* clock)
      : client_(std::move(client)), credentials_(std::move(credentials)), clock_(clock) {}

  StatusOr<ObjectList> ListPage(const ResourceType& type, const ListOptions& options);
  StatusOr<Json> Ask(const std::string& method, const std::string& path, const std::string& body,
                     const std::string& content_type,
                     absl::Duration deadline = absl::InfiniteDuration());
  StatusOr<HttpAnswer> Exchange(HttpCall call, const HttpClient::Sink* sink,
                                absl::Duration deadline = absl::InfiniteDuration());
  StatusOr<ObjectPtr> AskObject(const std::string& method, const std::string& path,
                                const Json& body,
                                absl::Duration deadline = absl::InfiniteDuration(),
                                const std::string& content_type = "application/json");

  const std::unique_ptr<HttpClient> client_;
  const std::unique_ptr<Credentials> credentials_;
  const Clock* const clock_;
};

}  // namespace weft::platform
