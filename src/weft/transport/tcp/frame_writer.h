// SPDX-License-Identifier: Apache-2.0
// Frames on their way into a socket: header, meta and body leave in one call from where they lie.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "weft/transport/send_queue.h"
#include "weft/transport/tcp/channel.h"

namespace weft::transport::tcp {

// Not thread-safe: used by whoever has the peer's writer role.
class FrameWriter {
 public:
  enum class Outcome { kAll, kBlocked, kPart };

  void Add(OutFrame frame);
  bool empty() const { return frames_.empty(); }
  size_t frames() const { return frames_.size(); }
  uint64_t bytes() const { return bytes_; }

  // One call of the channel. Frames that it has taken wholly go to `finished`. kAll: nothing is
  // left; kBlocked: the socket is full, or the handshake goes on; kPart: call again. Unavailable or
  // PermissionDenied when the connection is broken.
  StatusOr<Outcome> Write(Channel* channel, std::vector<OutFrame>* finished);

  std::vector<OutFrame> TakeAll();

 private:
  struct Entry {
    OutFrame frame;
    std::array<std::byte, kHeaderBytes> header;
  };
  void Advance(uint64_t written, std::vector<OutFrame>* finished);

  std::deque<Entry> frames_;
  uint64_t offset_ = 0;  // bytes of the first frame that have left
  uint64_t bytes_ = 0;   // still to leave
};

}  // namespace weft::transport::tcp
