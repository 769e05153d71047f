// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/endpoint.h"

#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"

namespace weft::transport {
namespace {

// Shared by the thread that waits and the callback, which may come after the wait was cancelled.
struct Pending {
  absl::Mutex mutex;
  bool told ABSL_GUARDED_BY(mutex) = false;
  StatusOr<PeerRef> result ABSL_GUARDED_BY(mutex) = Cancelled("Not connected");

  // False if something else was told before.
  bool Tell(StatusOr<PeerRef> answer) {
    absl::MutexLock lock(&mutex);
    if (told) return false;
    told = true;
    result = std::move(answer);
    return true;
  }
};

}  // namespace

StatusOr<PeerRef> Endpoint::Connect(const std::string& address, absl::Time deadline,
                                    Cancellation* cancellation) {
  if (OnIoThread()) {
    return FailedPrecondition("Connect waits and may not run on the IO thread: ", address);
  }
  auto pending = std::make_shared<Pending>();
  Cancellation::Token token = 0;
  if (cancellation != nullptr &&
      !cancellation->Register(&token, [pending](const Status& why) { pending->Tell(why); })) {
    return cancellation->status();
  }
  ConnectAsync(address, deadline, [pending](StatusOr<PeerRef> peer) {
    PeerRef late = peer.ok() ? *peer : nullptr;
    if (!pending->Tell(std::move(peer)) && late != nullptr)
      late->Close("nobody waits for it", absl::StatusCode::kCancelled);
  });
  {
    // Always told: ConnectAsync answers at its deadline and at shutdown.
    const Wait wait =
        waits_ == nullptr ? Wait() : waits_->Begin(WaitSubject{task_, "a connection", address});
    absl::MutexLock lock(&pending->mutex);
    pending->mutex.Await(absl::Condition(&pending->told));
  }
  if (cancellation != nullptr) cancellation->Deregister(token);
  absl::MutexLock lock(&pending->mutex);
  return std::move(pending->result);
}

}  // namespace weft::transport
