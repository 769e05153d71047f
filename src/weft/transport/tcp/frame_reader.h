// SPDX-License-Identifier: Apache-2.0
// Frames out of a socket: headers and meta pass through a small staging buffer, bodies are read
// straight to where the sink wants them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/transport/frame.h"
#include "weft/transport/frame_sink.h"
#include "weft/transport/region.h"
#include "weft/transport/tcp/channel.h"

namespace weft::transport::tcp {

class FrameReader {
 public:
  enum class Outcome { kDrained, kMore, kEnd };

  explicit FrameReader(uint64_t max_body_bytes);

  // Reads what is there, at most about `budget` bytes. kDrained: nothing more for now; kMore: the
  // budget is used; kEnd: the peer has closed. Unavailable or PermissionDenied if the connection
  // broke, InvalidArgument or FailedPrecondition if the bytes are not frames.
  StatusOr<Outcome> Read(Channel* channel, uint64_t budget, FrameSink* sink);

  // From a few KB, enough for a Hello, to the working size.
  void GrowStaging();

  // Lets go of the region that is being filled; what follows of it is dropped.
  void DropBody() { body_ = Region(); }

  // Has the socket report every byte again, however slowly it comes; until the next read.
  void ReportEveryByte(Channel* channel) { SetLowWater(channel, 1); }

  bool mid_frame() const { return end_ > begin_ || have_header_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t frames() const { return frames_; }

 private:
  StatusOr<size_t> ReadOnce(Channel* channel, uint64_t budget, size_t* wanted, bool* end);
  Status Take(size_t bytes, FrameSink* sink);
  Status ParseStaged(FrameSink* sink);
  // True when a frame's header and meta are staged whole and header_ and meta_ hold them.
  StatusOr<bool> TakeHead();
  Status BeginBody(FrameSink* sink);
  Status EndFrame(FrameSink* sink);
  void Compact();
  // How many bytes have to be there before the socket is said to be readable.
  void AdjustLowWater(Channel* channel);
  void SetLowWater(Channel* channel, int bytes);

  const uint64_t max_body_bytes_;
  std::vector<std::byte> staging_;
  size_t begin_ = 0, end_ = 0;  // the unread part of staging_
  bool have_header_ = false;    // header_ is parsed, its frame is not finished
  bool have_meta_ = false;      // so is meta_: the body is being read
  FrameHeader header_;
  std::string meta_;
  Region body_;
  uint64_t body_left_ = 0;
  uint64_t bytes_ = 0;
  uint64_t frames_ = 0;
  int low_water_ = 1;
};

}  // namespace weft::transport::tcp
