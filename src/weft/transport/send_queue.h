// SPDX-License-Identifier: Apache-2.0
// What waits to be sent to one peer: a control lane that goes first and a bulk lane that costs
// credit.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/transport/endpoint.h"

namespace weft::transport {

// One frame on its way out, with all that it needs.
struct OutFrame {
  FrameHeader header;
  std::string meta;
  absl::InlinedVector<Region, 1> body;
  SendDone done;

  uint64_t wire_bytes() const { return kHeaderBytes + meta.size() + header.body_bytes; }
  // Lets go of the body, then tells the sender. Not under a lock: it runs the caller's code.
  void Finish(const Status& status);
};

// InvalidArgument if a caller may not send this. Else `out` holds it, the regions moved out of
// `body`.
Status MakeFrame(FrameHeader header, absl::string_view meta, std::span<Region> body, OutFrame* out);

// A frame of the transport's own.
OutFrame MakeControl(FrameKind kind, uint64_t value, absl::string_view meta = {});

void FinishAll(std::vector<OutFrame> frames, const Status& status);

// Not thread-safe: the peer guards it.
//
// Credit: at most `window` bulk bytes may be under way, but a frame of any size may go while less
// than a quarter of the window is; the other side gives credit back in pieces of at least a
// quarter, so neither waits for the other.
class SendQueue {
 public:
  SendQueue(uint64_t max_bytes, size_t max_frames)
      : max_bytes_(max_bytes), max_frames_(max_frames) {}

  void set_window(uint64_t bytes) { window_ = bytes; }

  // ResourceExhausted when full; `frame` is left as it was then.
  Status Push(OutFrame& frame);
  // A frame of the transport's own, in front of the caller's; never refused, not counted.
  void PushOwn(OutFrame frame) { own_.push_back(std::move(frame)); }

  // True if a frame may leave now; false also when bulk frames wait for credit.
  bool Ready() const {
    return !own_.empty() || !control_.empty() || (!bulk_.empty() && HasCredit(bulk_.front()));
  }
  // Takes the next one, paying its credit. Ready() must hold.
  OutFrame Pop();

  bool empty() const { return own_.empty() && control_.empty() && bulk_.empty(); }
  // InvalidArgument if the peer gives back more than it got.
  Status AddCredit(uint64_t bytes);

  std::vector<OutFrame> TakeAll();

  uint64_t queued_bytes() const { return queued_bytes_; }

 private:
  bool HasCredit(const OutFrame& frame) const;
  void Pay(const OutFrame& frame);

  const uint64_t max_bytes_;
  const size_t max_frames_;
  uint64_t window_ = 0;
  uint64_t under_way_ = 0;
  uint64_t queued_bytes_ = 0;
  std::deque<OutFrame> own_;
  std::deque<OutFrame> control_;
  std::deque<OutFrame> bulk_;
};

// The receiver's half: gathers consumed bytes until a Credit frame is worth its while. Not
// thread-safe.
class CreditReturn {
 public:
  explicit CreditReturn(uint64_t window) : window_(window) {}
  // The bytes to announce now, or 0 to wait for more. More than is owed is cut.
  uint64_t Add(uint64_t bytes);
  // A bulk frame of this size has come in.
  void Owe(uint64_t bytes) { owed_ += bytes; }

 private:
  const uint64_t window_;
  uint64_t owed_ = 0;
  uint64_t gathered_ = 0;
};

}  // namespace weft::transport
