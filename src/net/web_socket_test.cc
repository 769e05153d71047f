// SPDX-License-Identifier: Apache-2.0
#include "net/web_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft {
namespace {

using ::testing::HasSubstr;
using Kind = WebSocketMessage::Kind;

// As a client sends it.
std::string Masked(uint8_t first, absl::string_view payload) {
  std::string frame = WebSocketFrame(Kind::kBinary, payload);
  frame[0] = static_cast<char>(first);
  const size_t head = frame.size() - payload.size();
  frame[1] = static_cast<char>(frame[1] | 0x80);
  const std::string mask = "\x11\x22\x33\x44";
  frame.insert(head, mask);
  for (size_t i = 0; i < payload.size(); ++i)
    frame[head + 4 + i] = static_cast<char>(frame[head + 4 + i] ^ mask[i % 4]);
  return frame;
}

TEST(WebSocketTest, AcceptsAsTheStandardSays) {
  // The example of RFC 6455, section 1.3.
  EXPECT_EQ(WebSocketAccept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(WebSocketTest, WritesLengthsAsTheStandardSays) {
  // Section 5.7: "Hello" in one frame, then lengths of 256 and 65536.
  EXPECT_EQ(WebSocketFrame(Kind::kText, "Hello"), absl::string_view("\x81\x05Hello", 7));
  EXPECT_EQ(WebSocketFrame(Kind::kBinary, std::string(256, 'x')).substr(0, 4),
            absl::string_view("\x82\x7e\x01\x00", 4));
  EXPECT_EQ(WebSocketFrame(Kind::kBinary, std::string(65536, 'x')).substr(0, 10),
            absl::string_view("\x82\x7f\0\0\0\0\0\1\0\0", 10));
  EXPECT_EQ(WebSocketClose(1000, "done"), absl::string_view("\x88\x06\x03\xe8"
                                                            "done",
                                                            8));
}

TEST(WebSocketTest, ReadsWhatComesInPieces) {
  const std::string text(70000, 'z');
  const std::string all = Masked(0x82, text) + Masked(0x89, "ping") + Masked(0x82, "");
  WebSocketReader reader(1 << 20);
  std::string held;
  std::vector<WebSocketMessage> messages;
  for (size_t i = 0; i < all.size(); i += 1000) {
    held += all.substr(i, 1000);
    absl::string_view rest = held;
    while (true) {
      const auto message = reader.Next(&rest);
      ASSERT_TRUE(message.ok()) << message.status();
      if (!message->has_value()) break;
      messages.push_back(**message);
    }
    held = std::string(rest);
  }
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[0].payload, text);
  EXPECT_EQ(messages[1].kind, Kind::kPing);
  EXPECT_EQ(messages[1].payload, "ping");
  EXPECT_EQ(messages[2].payload, "");
}

TEST(WebSocketTest, PutsFragmentsTogether) {
  // A ping may come between them.
  const std::string all = Masked(0x01, "Hel") + Masked(0x89, "") + Masked(0x80, "lo");
  WebSocketReader reader(100);
  absl::string_view rest = all;
  EXPECT_EQ((*reader.Next(&rest))->kind, Kind::kPing);
  const auto message = reader.Next(&rest);
  ASSERT_TRUE(message.ok() && message->has_value());
  EXPECT_EQ((*message)->kind, Kind::kText);
  EXPECT_EQ((*message)->payload, "Hello");
}

TEST(WebSocketTest, RefusesWhatIsNone) {
  const std::pair<std::string, const char*> cases[] = {
      {WebSocketFrame(Kind::kText, "Hello"), "not masked"},
      {Masked(0x83, "x"), "no known kind"},
      {Masked(0xc1, "x"), "no known kind"},
      {Masked(0x80, "x"), "do not follow"},
      {Masked(0x01, "x") + Masked(0x81, "y"), "do not follow"},
      {Masked(0x09, "x"), "in fragments"},
      {Masked(0x89, std::string(126, 'x')), "too long"},
      {Masked(0x82, std::string(101, 'x')), "longer than 100"},
      {Masked(0x02, std::string(60, 'x')) + Masked(0x80, std::string(60, 'x')), "longer than 100"},
      {absl::StrCat("\x82", "\xff", std::string(8, '\xff')), "longer than 100"}};
  for (const auto& [bytes, why] : cases) {
    WebSocketReader reader(100);
    absl::string_view rest = bytes;
    auto message = reader.Next(&rest);
    if (message.ok()) message = reader.Next(&rest);
    ASSERT_FALSE(message.ok()) << why;
    EXPECT_THAT(std::string(message.status().message()), HasSubstr(why));
  }
}

}  // namespace
}  // namespace weft
