// SPDX-License-Identifier: Apache-2.0
#include "weft/transport/frame.h"

#include <cstring>
#include <random>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace weft::transport {
namespace {

using ::testing::HasSubstr;

using Bytes = std::array<std::byte, kHeaderBytes>;

Bytes Encoded(const FrameHeader& header) {
  Bytes bytes;
  EncodeHeader(header, bytes);
  return bytes;
}

FrameHeader Sample() {
  FrameHeader header;
  header.kind = FrameKind::kTensor;
  header.flags = 0x12;
  header.graph = 0xdeadbeef;
  header.key = 7;
  header.step = 0x0123456789abcdef;
  header.body_bytes = 1 << 20;
  header.meta_bytes = 99;
  return header;
}

TEST(FrameHeader, SurvivesTheWire) {
  const auto parsed = ParseHeader(Encoded(Sample()));
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(parsed->kind, FrameKind::kTensor);
  EXPECT_EQ(parsed->flags, 0x12);
  EXPECT_EQ(parsed->graph, 0xdeadbeef);
  EXPECT_EQ(parsed->key, 7u);
  EXPECT_EQ(parsed->step, 0x0123456789abcdefu);
  EXPECT_EQ(parsed->body_bytes, 1u << 20);
  EXPECT_EQ(parsed->meta_bytes, 99u);
}

TEST(FrameHeader, LiesOnTheWireAsDocumented) {
  const Bytes bytes = Encoded(Sample());
  EXPECT_EQ(std::memcmp(bytes.data(), "WEFT\x02\x05\x12\x00\xef\xbe\xad\xde\x07\x00\x00\x00", 16),
            0);
  EXPECT_EQ(static_cast<uint8_t>(bytes[16]), 0xef);
  EXPECT_EQ(static_cast<uint8_t>(bytes[26]), 0x10);
  EXPECT_EQ(static_cast<uint8_t>(bytes[32]), 99);
}

TEST(FrameHeader, RefusesWhatItDoesNotKnow) {
  const Bytes good = Encoded(Sample());
  const auto with = [&good](size_t at, uint8_t value) {
    Bytes bytes = good;
    bytes[at] = static_cast<std::byte>(value);
    return ParseHeader(bytes).status();
  };
  EXPECT_TRUE(absl::IsInvalidArgument(with(0, 'G')));
  EXPECT_TRUE(absl::IsFailedPrecondition(with(4, 1)));
  EXPECT_TRUE(absl::IsFailedPrecondition(with(4, 0)));
  EXPECT_TRUE(absl::IsInvalidArgument(with(5, 0)));
  EXPECT_TRUE(absl::IsInvalidArgument(with(5, 15)));
  EXPECT_TRUE(absl::IsInvalidArgument(with(5, 255)));
  EXPECT_TRUE(absl::IsInvalidArgument(with(7, 1)));      // reserved flag
  EXPECT_TRUE(absl::IsInvalidArgument(with(39, 1)));     // reserved word
  EXPECT_TRUE(absl::IsInvalidArgument(with(30, 1)));     // body of 2^48
  EXPECT_TRUE(absl::IsInvalidArgument(with(35, 0x80)));  // meta of 2 GB
  EXPECT_THAT(with(4, 9).message(), HasSubstr("got 9, expected 2"));
}

TEST(FrameHeader, HoldsLimitsToTheByte) {
  FrameHeader header = Sample();
  header.meta_bytes = kMaxMetaBytes;
  header.body_bytes = 1000;
  EXPECT_TRUE(ParseHeader(Encoded(header), 1000).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(ParseHeader(Encoded(header), 999).status()));
  header.meta_bytes = kMaxMetaBytes + 1;
  EXPECT_TRUE(absl::IsInvalidArgument(ParseHeader(Encoded(header), 1000).status()));
}

TEST(FrameHeader, TransportFramesCarryNoLoad) {
  for (const FrameKind kind : {FrameKind::kHello, FrameKind::kCredit, FrameKind::kPing,
                               FrameKind::kPong, FrameKind::kGoodbye, FrameKind::kShare,
                               FrameKind::kShareReply, FrameKind::kLent, FrameKind::kWay}) {
    FrameHeader header;
    header.kind = kind;
    EXPECT_TRUE(ParseHeader(Encoded(header)).ok()) << FrameKindName(kind);
    header.body_bytes = 1;
    EXPECT_FALSE(ParseHeader(Encoded(header)).ok()) << FrameKindName(kind);
  }
  FrameHeader ping;
  ping.meta_bytes = 1;
  EXPECT_FALSE(ParseHeader(Encoded(ping)).ok());
}

TEST(Hello, SurvivesTheWire) {
  Hello hello{std::string("se\0cret", 7), "/job:ps/task:3", 42, 1 << 28};
  const auto encoded = EncodeHello(hello);
  ASSERT_TRUE(encoded.ok());
  const auto parsed = ParseHello(*encoded);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->token, hello.token);
  EXPECT_EQ(parsed->task, hello.task);
  EXPECT_EQ(parsed->incarnation, 42u);
  EXPECT_EQ(parsed->credit_bytes, 1u << 28);
}

TEST(Hello, RefusesEveryTruncationAndAnyExtraByte) {
  const std::string encoded = *EncodeHello({"token", "/job:worker/task:0", 1, 2});
  for (size_t size = 0; size < encoded.size(); ++size) {
    EXPECT_FALSE(ParseHello(absl::string_view(encoded).substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ParseHello(encoded + "x").ok());
}

TEST(Hello, RefusesFieldsOverTheirLimits) {
  EXPECT_FALSE(EncodeHello({std::string(kMaxTokenBytes + 1, 'x'), "t", 1, 1}).ok());
  EXPECT_FALSE(EncodeHello({"", std::string(kMaxTaskBytes + 1, 'x'), 1, 1}).ok());
  EXPECT_FALSE(EncodeHello({"", "", 1, 1}).ok());
  EXPECT_FALSE(EncodeHello({"", "two\nlines", 1, 1}).ok());
  const auto largest =
      EncodeHello({std::string(kMaxTokenBytes, 'x'), std::string(kMaxTaskBytes, 'y'), 1, 1});
  ASSERT_TRUE(largest.ok());
  EXPECT_LE(largest->size(), kMaxHelloBytes);
  EXPECT_TRUE(ParseHello(*largest).ok());
}

TEST(Hello, RandomBytesNeverCrashIt) {
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 4 == 0 ? random() : random() % 8);
    const auto hello = ParseHello(bytes);
    if (!hello.ok()) continue;
    EXPECT_EQ(*EncodeHello(*hello), bytes);
  }
}

TEST(Token, EqualOnlyIfTheSameBytes) {
  EXPECT_TRUE(SameToken("", ""));
  EXPECT_TRUE(SameToken("abc", "abc"));
  EXPECT_FALSE(SameToken("abc", "abd"));
  EXPECT_FALSE(SameToken("abc", "abcabc"));
  EXPECT_FALSE(SameToken("abc", ""));
  EXPECT_FALSE(SameToken("", "abc"));
  EXPECT_FALSE(SameToken("abc", "ab"));
  EXPECT_FALSE(SameToken("", absl::string_view("\0", 1)));
}

}  // namespace
}  // namespace weft::transport
