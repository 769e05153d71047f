// SPDX-License-Identifier: Apache-2.0
// Messages of the WebSocket protocol (RFC 6455), as a server reads and writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft {

struct WebSocketMessage {
  enum class Kind : uint8_t { kText = 1, kBinary = 2, kClose = 8, kPing = 9, kPong = 10 };
  Kind kind = Kind::kBinary;
  std::string payload;
};

// What the server answers to a Sec-WebSocket-Key.
std::string WebSocketAccept(absl::string_view key);
// One message in one frame.
std::string WebSocketFrame(WebSocketMessage::Kind kind, absl::string_view payload);
// The last frame: 1000 is a good end.
std::string WebSocketClose(int code, absl::string_view reason);

// Not thread-safe.
class WebSocketReader {
 public:
  explicit WebSocketReader(size_t most_bytes) : most_bytes_(most_bytes) {}

  // The next whole message, taken from the front of `input`; none: more must come. InvalidArgument
  // says what a client did that it may not: nothing can be read after that.
  StatusOr<std::optional<WebSocketMessage>> Next(absl::string_view* input);

 private:
  const size_t most_bytes_;                  // of a message
  std::optional<WebSocketMessage> partial_;  // of which not all fragments have come
};

}  // namespace weft
