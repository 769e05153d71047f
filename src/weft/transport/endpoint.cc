// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/endpoint.h"

#include <utility>

#include "absl/synchronization/notification.h"

namespace weft::transport {

StatusOr<PeerRef> Endpoint::Connect(const std::string& address, absl::Time deadline) {
  if (OnIoThread()) {
    return FailedPrecondition("Connect waits and may not run on the IO thread: ", address);
  }
  // Always told: ConnectAsync answers at its deadline and at shutdown.
  absl::Notification told;
  StatusOr<PeerRef> result = Unavailable("Not connected to ", address);
  ConnectAsync(address, deadline, [&](StatusOr<PeerRef> peer) {
    result = std::move(peer);
    told.Notify();
  });
  told.WaitForNotification();
  return result;
}

}  // namespace weft::transport
