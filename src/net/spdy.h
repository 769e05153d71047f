// SPDX-License-Identifier: Apache-2.0
// Frames of SPDY 3.1, which kubectl speaks for port-forward (and older ones for exec), as a server
// reads and writes them. Without flow control, as its clients have none.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft {

struct SpdyFrame {
  enum class Kind { kOpen, kData, kReset, kPing, kGoAway, kOther };
  Kind kind = Kind::kOther;
  uint32_t stream = 0;  // of a ping: its number
  bool is_last = false;
  std::map<std::string, std::string> headers;  // of kOpen; names in lower case
  std::string data;
};

// Not thread-safe.
class SpdyReader {
 public:
  SpdyReader();
  ~SpdyReader();
  SpdyReader(const SpdyReader&) = delete;
  SpdyReader& operator=(const SpdyReader&) = delete;

  // The next frame, taken from the front of `input`; none: more must come. InvalidArgument says
  // what is wrong: nothing can be read after that.
  StatusOr<std::optional<SpdyFrame>> Next(absl::string_view* input);

 private:
  class Inflater;
  StatusOr<std::map<std::string, std::string>> ReadHeaders(absl::string_view block);
  const std::unique_ptr<Inflater> inflater_;  // of the headers of the whole connection
};

// Not thread-safe.
class SpdyWriter {
 public:
  SpdyWriter();
  ~SpdyWriter();
  SpdyWriter(const SpdyWriter&) = delete;
  SpdyWriter& operator=(const SpdyWriter&) = delete;

  // Takes a stream that the client opened.
  StatusOr<std::string> Accept(uint32_t stream);
  static std::string Data(uint32_t stream, absl::string_view bytes, bool is_last);
  static std::string Reset(uint32_t stream);
  static std::string Ping(uint32_t number);
  static std::string GoAway();

 private:
  class Deflater;
  const std::unique_ptr<Deflater> deflater_;
};

}  // namespace weft
