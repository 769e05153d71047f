// SPDX-License-Identifier: Apache-2.0
// Services with addresses of their own on this machine: what kube-proxy is on a cluster.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

#include "base/clock.h"
#include "net/tcp_relay.h"
#include "platform/reconcile/controller_loop.h"
#include "platform/reconcile/informer.h"
#include "platform/reconcile/work_queue.h"
#include "platform/store/object_store.h"

namespace weft::platform {

// Listens at the clusterIP of each service that asks for an own address (own_address.h), at its
// ports, and leads connections to its ready pods, one after the other. Thread-safe. Borrows store
// and clock.
class ServiceRelay {
 public:
  static StatusOr<std::unique_ptr<ServiceRelay>> Create(ObjectStore* store, const Clock* clock);
  ~ServiceRelay();

  // Works on a thread until destroyed.
  void Start();

 private:
  ServiceRelay(ObjectStore* store, const Clock* clock, std::unique_ptr<TcpRelay> relay);
  StatusOr<absl::Duration> Look(const std::string& key);

  WorkQueue queue_;
  Informer services_;
  Informer endpoints_;
  const std::unique_ptr<TcpRelay> relay_;
  absl::Mutex mutex_;
  // By key of the service: where it listens.
  std::map<std::string, std::map<std::string, SocketAddress>> entrances_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<ControllerLoop> loop_;  // last: its thread uses all of the above
};

}  // namespace weft::platform
