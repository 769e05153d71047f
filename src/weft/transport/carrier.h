// SPDX-License-Identifier: Apache-2.0
// A way for frames beside the socket of a connection (ucx/): once both sides are let in, the
// caller's frames go there, and the socket only greets, pings, gives credit and tells of the end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/transport/frame_sink.h"
#include "weft/transport/send_queue.h"

namespace weft::transport {

// One connection as its passage sees it. Calls come on the IO thread, out of Carrier::Progress and
// Passage::Start.
class PassageUser : public FrameSink {
 public:
  // Once: frames may go. Comes out of Passage::Open or later.
  virtual void PassageOpened() = 0;
  // Frames were handed over, or everything that was given has left.
  virtual void PassageMoved() = 0;
  // Nothing more goes either way.
  virtual void PassageFailed(const Status& why) = 0;
};

struct PassageStats {
  uint64_t frames_sent = 0, bytes_sent = 0, bytes_received = 0;
};

// One connection's way. Frames of a lane arrive in order, whatever way each of them takes.
class Passage {
 public:
  virtual ~Passage() = default;

  // How the other side gets here: what it gives to Open.
  virtual std::string Offer() const = 0;
  // IO thread. Begins to go there. InvalidArgument or Unavailable if there is no way.
  virtual Status Open(absl::string_view offer) = 0;
  // IO thread. What arrived before this was kept, and is handed over now.
  virtual void Start() = 0;
  // Any thread, once it is open and before End. Takes no lock of the user's.
  virtual void Send(OutFrame frame, bool is_bulk) = 0;
  // IO thread. Fails what has not left; the user is told nothing more.
  virtual void End(const Status& why) = 0;

  virtual uint64_t given() const = 0;      // frames to Send
  virtual uint64_t under_way() const = 0;  // of them, those that have not left
  // IO thread. Frames that the user has got, or has refused a place for.
  virtual uint64_t delivered() const = 0;
  // IO thread. Unavailable if what was given does not leave, for `patience` and longer if it is
  // much.
  virtual Status CheckMoving(int64_t now_ns, int64_t patience_ns) = 0;
  virtual PassageStats stats() const = 0;
};

// What all connections of an endpoint share. The IO thread's, but for Wake of its own.
class Carrier {
 public:
  virtual ~Carrier() = default;

  // What each side says in its Hello, so that none takes another's frames for its own; TCP is 0.
  virtual uint32_t number() const = 0;
  // `user` outlives the passage's End.
  virtual std::unique_ptr<Passage> NewPassage(PassageUser* user, uint64_t max_body_bytes) = 0;

  // Readable when there is something to do, after Arm has returned true.
  virtual int event_fd() const = 0;
  // False: there is something to do at once.
  virtual bool Arm() = 0;
  // Does some of what there is to do; false if there was nothing.
  virtual bool Progress() = 0;
  // All passages have ended: waits a moment for what still holds bytes.
  virtual void Drain() = 0;
};

}  // namespace weft::transport
