// SPDX-License-Identifier: Apache-2.0
// The interface of tcp/ and of siblings that may come. An Endpoint is a task's place on the
// network; a Peer is one connection to another task; a FrameHandler is what the caller gives to be
// told. The transport never allocates a body: it asks the handler where the bytes shall go.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

#include "base/cancellation.h"
#include "base/shared_memory.h"
#include "base/status.h"
#include "base/waits.h"
#include "net/job_identity.h"
#include "weft/transport/frame.h"
#include "weft/transport/region.h"

namespace weft::transport {

struct EndpointOptions {
  std::string task = "/job:local/task:0";  // this task's name, shown to peers and in errors
  uint64_t incarnation = 1;                // differs at each start of the task
  std::string token;                       // both sides must hold the same bytes; no secret
  std::optional<JobTls> tls;  // tcp: of the job that all peers are of; none: in the clear
  int spin_us = 0;  // how long the IO thread polls before it sleeps; zero unless it owns a core
  absl::Duration ping_interval =
      absl::Seconds(1);  // a Ping when nothing else was sent for this long
  absl::Duration dead_after =
      absl::Seconds(10);  // no byte from the peer for this long: dead; infinite: never
  absl::Duration hello_deadline = absl::Seconds(5);  // for a connection to say who it is
  absl::Duration linger = absl::Seconds(1);          // for Close to send what is queued
  int max_unauthenticated = 64;                      // connections that have not said Hello
  uint64_t max_body_bytes = uint64_t{16} << 30;      // of a received frame
  uint64_t credit_bytes = uint64_t{256} << 20;       // bulk bytes under way to this side, per peer
  uint64_t max_queued_bytes = uint64_t{4} << 30;     // waiting to be sent, per peer
  size_t max_queued_frames = 65536;                  // waiting to be sent, per peer
  WaitRegistry* waits = nullptr;  // where Connect is registered while it waits; may be null
  bool auto_credit =
      true;  // a frame's credit goes back when FrameReceived returns; else ReturnCredit
  // Where bodies may lie that a peer on this host reads in place (tcp); null: all are copied.
  const SharedMemory* shared_memory = nullptr;
};

// Called once: OK when the last byte has left (taken by the kernel, or lent), else
// why it never will. May run on the caller's thread before Send returns, or on the IO thread; must
// not block.
using SendDone = absl::AnyInvocable<void(const Status&)>;

struct PeerStats {
  uint64_t frames_sent = 0, bytes_sent = 0;
  uint64_t frames_received = 0, bytes_received = 0;
  uint64_t frames_lent = 0;   // of frames_sent: the body was left where it lay
  uint64_t queued_bytes = 0;  // waiting to be sent now
  absl::Duration round_trip;  // of the last Ping; zero before the first
};

// One connection to another task. Thread-safe. Shared because the endpoint and any number of
// callers hold it; it outlives its connection, and then fails sends with Unavailable.
class Peer {
 public:
  virtual ~Peer() = default;

  // Queues or sends one frame and never waits for the peer. `header.kind` is one of the caller's;
  // `meta` (at most kMaxMetaBytes) is copied if it must wait; the regions of `body` are moved out
  // and held until `done`. Bulk frames (Tensor) arrive in order, so do all others; a
  // control frame may pass bulk frames that wait. `done` may be null; it gets InvalidArgument,
  // Unavailable (peer is dead, named), what Close was given, or ResourceExhausted (the queue is
  // full).
  virtual void Send(FrameHeader header, absl::string_view meta, std::span<Region> body,
                    SendDone done) = 0;

  // Only without auto_credit: the bytes of a bulk frame are consumed, the peer may send more.
  virtual void ReturnCredit(uint64_t bytes) = 0;

  // Sends what is queued for at most `linger`, then says Goodbye. Later sends fail with `code`; the
  // handler gets PeerDown and no more frames. Does not wait.
  virtual void Close(absl::string_view reason, absl::StatusCode code) = 0;

  virtual PeerStats stats() const = 0;

  // Fixed once the peer is up.
  const std::string& task() const { return task_; }
  uint64_t incarnation() const { return incarnation_; }
  const std::string& address() const { return address_; }  // of the other side
  // "/job:ps/task:0 at 10.0.0.2:2222"
  std::string name() const { return absl::StrCat(task_, " at ", address_); }

  // A place for the handler's own record of this peer; set it in PeerUp.
  void set_context(void* context) { context_ = context; }
  void* context() const { return context_; }

 protected:
  std::string task_ = "unknown task";
  std::string address_;
  uint64_t incarnation_ = 0;

 private:
  void* context_ = nullptr;
};

using PeerRef = std::shared_ptr<Peer>;

// What the caller gives to be told. All calls come from the endpoint's IO thread, one at a time,
// and must not block: a slow handler stalls every peer. It outlives the endpoint.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;

  // A peer has said who it is and is let in, whichever side connected.
  virtual void PeerUp(const PeerRef& peer) = 0;

  // Where the body of this frame goes: a region of header.body_bytes that stays valid while `keep`
  // lives. An empty region: the bytes are dropped and FrameReceived is not called (a dead step).
  // Not called for empty bodies, nor where the sender's region is handed over as it is.
  virtual Region ReceiveBuffer(const PeerRef& peer, const FrameHeader& header,
                               absl::string_view meta) = 0;

  // A whole frame is here; `body` is the region of ReceiveBuffer, or the sender's own (read_only
  // where that is another process).
  virtual void FrameReceived(const PeerRef& peer, const FrameHeader& header, absl::string_view meta,
                             Region body) = 0;

  // The connection is gone; called once for each PeerUp. Unavailable if the peer died or said
  // Goodbye, Cancelled if it was closed here.
  virtual void PeerDown(const PeerRef& peer, const Status& why) = 0;
};

// A task's place on the network. Thread-safe. The destructor shuts it down.
class Endpoint {
 public:
  using Connected = absl::AnyInvocable<void(StatusOr<PeerRef>)>;

  virtual ~Endpoint() = default;

  // Accepts peers at `bind` ("127.0.0.1:0", "[::]:4000") and returns the address to connect to.
  // Once an endpoint.
  virtual StatusOr<std::string> Listen(const std::string& bind) = 0;

  // One try to reach `address`, without retries: Unavailable (nobody there), DeadlineExceeded,
  // PermissionDenied (token), FailedPrecondition (other version), Cancelled (shut down).
  // `done` runs on the IO thread; names are resolved on the caller's.
  virtual void ConnectAsync(const std::string& address, absl::Time deadline, Connected done) = 0;

  // The same, waiting for it, registered and cancellable (`cancellation` may be null).
  // FailedPrecondition on the IO thread, which must not wait.
  StatusOr<PeerRef> Connect(const std::string& address, absl::Time deadline,
                            Cancellation* cancellation = nullptr);

  // Closes every peer (PeerDown is called for each), refuses new ones and ends the IO thread; no
  // handler call comes after. May be called twice, but not on the IO thread.
  virtual void Shutdown() = 0;

  virtual bool OnIoThread() const = 0;

  // Connections turned away or dropped before they were let in.
  virtual uint64_t refused() const = 0;

 protected:
  explicit Endpoint(const EndpointOptions& options) : waits_(options.waits), task_(options.task) {}

 private:
  WaitRegistry* const waits_;
  const std::string task_;
};

}  // namespace weft::transport
