// SPDX-License-Identifier: Apache-2.0
#include "net/web_socket.h"

#include <utility>

#include <openssl/sha.h>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace weft {
namespace {

using Kind = WebSocketMessage::Kind;

constexpr uint8_t kFinal = 0x80;
constexpr uint8_t kMasked = 0x80;
constexpr uint8_t kContinuation = 0;
constexpr uint64_t kMostControlPayload = 125;

uint64_t BigEndian(absl::string_view bytes) {
  uint64_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<uint8_t>(c);
  return value;
}

bool IsKnown(uint8_t code) { return code <= 2 || (code >= 8 && code <= 10); }

// The first two bytes of a frame and what they say of the bytes that follow.
struct FrameHead {
  uint8_t code = 0;
  bool is_final = false;
  bool is_masked = false;
  size_t head_bytes = 2;  // with the length, without the mask
  uint64_t length = 0;
};

// Nothing while the head has not come in whole.
std::optional<FrameHead> ReadHead(absl::string_view input) {
  if (input.size() < 2) return std::nullopt;
  FrameHead head;
  const auto first = static_cast<uint8_t>(input[0]);
  const auto second = static_cast<uint8_t>(input[1]);
  head.code = first & 0x7f;  // with the reserved bits, which no known code has
  head.is_final = (first & kFinal) != 0;
  head.is_masked = (second & kMasked) != 0;
  head.length = second & 0x7f;
  const size_t more = head.length == 126 ? 2 : head.length == 127 ? 8 : 0;
  head.head_bytes += more;
  if (input.size() < head.head_bytes) return std::nullopt;
  if (more > 0) head.length = BigEndian(input.substr(2, more));
  return head;
}

}  // namespace

std::string WebSocketAccept(absl::string_view key) {
  const std::string text = absl::StrCat(key, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
  unsigned char digest[SHA_DIGEST_LENGTH];
  ::SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  return absl::Base64Escape(
      absl::string_view(reinterpret_cast<const char*>(digest), sizeof(digest)));
}

std::string WebSocketFrame(Kind kind, absl::string_view payload) {
  std::string frame(1, static_cast<char>(kFinal | static_cast<uint8_t>(kind)));
  const uint64_t size = payload.size();
  const int length_bytes = size < 126 ? 0 : size <= 0xffff ? 2 : 8;
  frame.push_back(static_cast<char>(length_bytes == 0 ? size : length_bytes == 2 ? 126 : 127));
  for (int i = length_bytes - 1; i >= 0; --i) frame.push_back(static_cast<char>(size >> (8 * i)));
  frame.append(payload.data(), payload.size());
  return frame;
}

std::string WebSocketClose(int code, absl::string_view reason) {
  std::string payload = {static_cast<char>(code >> 8), static_cast<char>(code)};
  absl::StrAppend(&payload, reason.substr(0, kMostControlPayload - 2));
  return WebSocketFrame(Kind::kClose, payload);
}

StatusOr<std::optional<WebSocketMessage>> WebSocketReader::Next(absl::string_view* input) {
  while (true) {
    const std::optional<FrameHead> head = ReadHead(*input);
    if (!head.has_value()) return std::optional<WebSocketMessage>();
    const bool is_control = head->code >= 8;
    if (!IsKnown(head->code)) return InvalidArgument("A WebSocket frame is of no known kind");
    if (!head->is_masked) return InvalidArgument("A client's WebSocket frame is not masked");
    if (is_control && (!head->is_final || head->length > kMostControlPayload))
      return InvalidArgument("A WebSocket control frame is too long, or in fragments");
    const size_t before = partial_.has_value() && !is_control ? partial_->payload.size() : 0;
    if (head->length > most_bytes_ - before)
      return InvalidArgument("A WebSocket message is longer than ", most_bytes_, " bytes");
    if (!is_control && (head->code == kContinuation) != partial_.has_value())
      return InvalidArgument("WebSocket fragments do not follow each other");
    const size_t total = head->head_bytes + 4 + head->length;
    if (input->size() < total) return std::optional<WebSocketMessage>();
    const absl::string_view mask = input->substr(head->head_bytes, 4);
    std::string payload(input->substr(head->head_bytes + 4, head->length));
    for (size_t i = 0; i < payload.size(); ++i)
      payload[i] = static_cast<char>(payload[i] ^ mask[i % 4]);
    input->remove_prefix(total);
    if (is_control) return std::optional<WebSocketMessage>({Kind{head->code}, std::move(payload)});
    if (!partial_.has_value()) partial_ = WebSocketMessage{Kind{head->code}, ""};
    partial_->payload += payload;
    if (head->is_final) return std::exchange(partial_, std::nullopt);
  }
}

}  // namespace weft
