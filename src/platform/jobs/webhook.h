// SPDX-License-Identifier: Apache-2.0
// The checks of admission.h as a validating webhook, with a certificate that is made here, renewed
// in time, and told to the cluster.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#include "base/clock.h"
#include "base/status.h"
#include "base/threads.h"
#include "net/certificate.h"
#include "net/http_server.h"
#include "platform/store/object_store.h"

namespace weft::platform {

struct WebhookOptions {
  SocketAddress address = {"0.0.0.0", 9443};
  // tls.crt and tls.key, and ca.crt when they are our own, which are made for `host`; without
  // ca.crt somebody else keeps them, and what changes there is taken up.
  std::string folder;
  std::string host = "127.0.0.1";  // the address or name by which the API server comes
  // "weft-system/weft-operator": the service whose name `host` is; empty: the API server goes to
  // the host itself.
  std::string service;
  absl::Duration validity = absl::Hours(24 * 90);
  // A ValidatingWebhookConfiguration in `store` whose caBundle holds our authority, beside those of
  // other operators; empty: <folder>/webhook.yaml is written for people to apply.
  std::string configuration;
  ObjectStore* store = nullptr;
};

// Serves POST /validate over TLS, and /healthz. Thread-safe; borrows store and clock.
class Webhook {
 public:
  static StatusOr<std::unique_ptr<Webhook>> Start(WebhookOptions options, const Clock* clock);
  ~Webhook();
  Webhook(const Webhook&) = delete;
  Webhook& operator=(const Webhook&) = delete;

  int port() const { return server_->port(); }
  // The cluster knows our authority, as far as we are to tell it.
  bool IsTold() const;
  // Renews and tells what is due; a thread of its own does it from time to time.
  Status Maintain();

 private:
  struct Held {
    Identity identity;
    std::string authority_pem;  // empty: somebody else made the certificate
    absl::Time end;
  };
  Webhook(WebhookOptions options, const Clock* clock);
  StatusOr<Held> Read() const;
  StatusOr<Held> Make() const;
  Status Keep(const Held& held) const;
  Status Load();
  Status Follow();  // who keeps the files
  Status Renew();
  // Adds what must be trusted to the configuration, and takes out what has expired.
  Status Tell(const std::string& authority_pem);
  Status WriteConfiguration() const;
  void Run();

  const WebhookOptions options_;
  const Clock* const clock_;
  Held held_;
  Held next_;           // told, but not shown yet
  absl::Time told_at_;  // of next_
  mutable absl::Mutex mutex_;
  bool is_told_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::shared_ptr<TlsConfig> tls_;  // shared with the server's sessions
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Thread> thread_;  // last: it uses all of the above
};

// The certificates of `bundle` that have not expired, and `authority`; no more than the newest 32.
std::string JoinAuthorities(const std::string& bundle, const std::string& authority,
                            absl::Time now);

}  // namespace weft::platform
