// SPDX-License-Identifier: Apache-2.0
// Who takes the frames that a connection reads.
#pragma once

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/transport/frame.h"
#include "weft/transport/region.h"

namespace weft::transport {

// An error from either ends the reading.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  // A header and its meta are here and header.body_bytes follow: where to? Empty: drop the frame.
  virtual StatusOr<Region> FrameBegins(const FrameHeader& header, absl::string_view meta) = 0;
  virtual Status FrameEnds(const FrameHeader& header, absl::string_view meta, Region body) = 0;
};

}  // namespace weft::transport
