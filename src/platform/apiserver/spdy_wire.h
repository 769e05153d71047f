// SPDX-License-Identifier: Apache-2.0
// SPDY frames on a connection, or in the messages of a WebSocket on it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "net/spdy.h"
#include "net/upgraded_connection.h"
#include "net/web_socket.h"

namespace weft::platform {

// Not thread-safe. Borrows the connection.
class SpdyWire {
 public:
  SpdyWire(UpgradedConnection* connection, bool is_tunnel);

  // Streams, data and resets that have come; pings are answered here. Any error ends the wire.
  Status Take(std::vector<SpdyFrame>* frames);
  void Send(const std::string& frame);
  // The peer has said that this is all.
  bool has_ended() const { return has_ended_; }
  // Says it from this side.
  void Finish();
  SpdyWriter& writer() { return writer_; }

 private:
  // What the connection brought, without the messages around it.
  Status Unpack();

  UpgradedConnection* const connection_;
  std::optional<WebSocketReader> tunnel_;
  std::string bytes_;
  SpdyReader reader_;
  SpdyWriter writer_;
  bool has_ended_ = false;
};

}  // namespace weft::platform
