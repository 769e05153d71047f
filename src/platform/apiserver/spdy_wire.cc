// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/spdy_wire.h"

#include <utility>

namespace weft::platform {
namespace {

constexpr size_t kMostTunnelMessage = 2 << 20;

}  // namespace

SpdyWire::SpdyWire(UpgradedConnection* connection, bool is_tunnel) : connection_(connection) {
  if (is_tunnel) tunnel_.emplace(kMostTunnelMessage);
}

Status SpdyWire::Unpack() {
  std::string& input = connection_->input();
  if (!tunnel_.has_value()) {
    bytes_ += input;
    input.clear();
    return absl::OkStatus();
  }
  absl::string_view rest = input;
  while (true) {
    WEFT_ASSIGN_OR_RETURN(std::optional<WebSocketMessage> message, tunnel_->Next(&rest));
    if (!message.has_value()) break;
    switch (message->kind) {
      case WebSocketMessage::Kind::kPing:
        connection_->Send(WebSocketFrame(WebSocketMessage::Kind::kPong, message->payload));
        break;
      case WebSocketMessage::Kind::kPong:
        break;
      case WebSocketMessage::Kind::kClose:
        has_ended_ = true;
        break;
      default:
        bytes_ += message->payload;
    }
  }
  input.erase(0, input.size() - rest.size());
  return absl::OkStatus();
}

Status SpdyWire::Take(std::vector<SpdyFrame>* frames) {
  WEFT_RETURN_IF_ERROR(Unpack());
  absl::string_view rest = bytes_;
  while (true) {
    WEFT_ASSIGN_OR_RETURN(std::optional<SpdyFrame> frame, reader_.Next(&rest));
    if (!frame.has_value()) break;
    switch (frame->kind) {
      case SpdyFrame::Kind::kPing:
        // Clients' pings have odd numbers; even ones would answer ours.
        if (frame->stream % 2 == 1) Send(SpdyWriter::Ping(frame->stream));
        break;
      case SpdyFrame::Kind::kGoAway:
        has_ended_ = true;
        break;
      case SpdyFrame::Kind::kOther:
        break;
      default:
        frames->push_back(*std::move(frame));
    }
  }
  bytes_.erase(0, bytes_.size() - rest.size());
  return absl::OkStatus();
}

void SpdyWire::Send(const std::string& frame) {
  connection_->Send(tunnel_.has_value() ? WebSocketFrame(WebSocketMessage::Kind::kBinary, frame)
                                        : frame);
}

void SpdyWire::Finish() {
  if (tunnel_.has_value()) return connection_->Send(WebSocketClose(1000, ""));
  connection_->Send(SpdyWriter::GoAway());
}

}  // namespace weft::platform
