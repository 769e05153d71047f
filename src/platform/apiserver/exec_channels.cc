// SPDX-License-Identifier: Apache-2.0
#include "platform/apiserver/exec_channels.h"

#include <map>
#include <optional>
#include <utility>

#include "net/web_socket.h"
#include "platform/apiserver/spdy_wire.h"

namespace weft::platform {
namespace {

constexpr size_t kMostExecMessage = 2 << 20;
constexpr int kCloseChannel = 255;

class WebSocketChannels : public ExecChannels {
 public:
  explicit WebSocketChannels(UpgradedConnection* connection)
      : connection_(connection), reader_(kMostExecMessage) {}

  Status Take(std::vector<ExecInput>* inputs) override {
    std::string& input = connection_->input();
    absl::string_view rest = input;
    while (true) {
      WEFT_ASSIGN_OR_RETURN(std::optional<WebSocketMessage> message, reader_.Next(&rest));
      if (!message.has_value()) break;
      if (message->kind == WebSocketMessage::Kind::kPing) {
        connection_->Send(WebSocketFrame(WebSocketMessage::Kind::kPong, message->payload));
      } else if (message->kind == WebSocketMessage::Kind::kClose) {
        has_ended_ = true;
      } else if (message->kind != WebSocketMessage::Kind::kPong && !message->payload.empty()) {
        const int channel = static_cast<uint8_t>(message->payload[0]);
        const bool closes = channel == kCloseChannel && message->payload.size() == 2;
        if (closes)
          inputs->push_back({static_cast<uint8_t>(message->payload[1]), "", true});
        else
          inputs->push_back({channel, message->payload.substr(1), false});
      }
    }
    input.erase(0, input.size() - rest.size());
    return absl::OkStatus();
  }

  bool IsReady() const override { return true; }

  void Send(ExecChannel channel, absl::string_view bytes) override {
    std::string payload(1, static_cast<char>(channel));
    payload.append(bytes.data(), bytes.size());
    connection_->Send(WebSocketFrame(WebSocketMessage::Kind::kBinary, payload));
  }

  void Finish() override { connection_->Send(WebSocketClose(1000, "")); }
  bool has_ended() const override { return has_ended_; }

 private:
  UpgradedConnection* const connection_;
  WebSocketReader reader_;
  bool has_ended_ = false;
};

class SpdyChannels : public ExecChannels {
 public:
  SpdyChannels(UpgradedConnection* connection, std::set<int> channels)
      : wire_(connection, /*is_tunnel=*/false), wanted_(std::move(channels)) {}

  Status Take(std::vector<ExecInput>* inputs) override {
    std::vector<SpdyFrame> frames;
    WEFT_RETURN_IF_ERROR(wire_.Take(&frames));
    for (SpdyFrame& frame : frames) {
      if (frame.kind == SpdyFrame::Kind::kOpen) WEFT_RETURN_IF_ERROR(Open(frame));
      for (const auto& [channel, stream] : streams_) {
        if (stream != frame.stream || (frame.data.empty() && !frame.is_last)) continue;
        inputs->push_back({channel, std::move(frame.data), frame.is_last});
        break;
      }
    }
    return absl::OkStatus();
  }

  bool IsReady() const override { return streams_.size() == wanted_.size(); }

  void Send(ExecChannel channel, absl::string_view bytes) override {
    if (streams_.count(channel) != 0) wire_.Send(SpdyWriter::Data(streams_[channel], bytes, false));
  }

  void Finish() override {
    for (const auto& [channel, stream] : streams_) wire_.Send(SpdyWriter::Data(stream, "", true));
  }
  bool has_ended() const override { return wire_.has_ended(); }

 private:
  Status Open(const SpdyFrame& frame) {
    static const auto* const names = new std::map<std::string, int>({{"stdin", kExecInput},
                                                                     {"stdout", kExecOutput},
                                                                     {"stderr", kExecError},
                                                                     {"error", kExecStatus},
                                                                     {"resize", kExecResize}});
    const auto type = frame.headers.find("streamtype");
    const auto name = type == frame.headers.end() ? names->end() : names->find(type->second);
    if (name == names->end() || wanted_.count(name->second) == 0 ||
        streams_.count(name->second) != 0)
      return InvalidArgument("A SPDY stream is of no type that was asked for");
    streams_[name->second] = frame.stream;
    WEFT_ASSIGN_OR_RETURN(const std::string reply, wire_.writer().Accept(frame.stream));
    wire_.Send(reply);
    return absl::OkStatus();
  }

  SpdyWire wire_;
  const std::set<int> wanted_;
  std::map<int, uint32_t> streams_;  // by channel
};

}  // namespace

std::unique_ptr<ExecChannels> ExecOverWebSocket(UpgradedConnection* connection) {
  return std::make_unique<WebSocketChannels>(connection);
}

std::unique_ptr<ExecChannels> ExecOverSpdy(UpgradedConnection* connection, std::set<int> channels) {
  return std::make_unique<SpdyChannels>(connection, std::move(channels));
}

}  // namespace weft::platform
