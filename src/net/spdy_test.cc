// SPDX-License-Identifier: Apache-2.0
// What clients send stands in tests/kubernetes/reach_test.py; here is what they should not.
#include "net/spdy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/escaping.h"

namespace weft {
namespace {

using ::testing::HasSubstr;

StatusOr<std::optional<SpdyFrame>> First(const std::string& bytes) {
  SpdyReader reader;
  absl::string_view rest = bytes;
  return reader.Next(&rest);
}

TEST(SpdyTest, ReadsDataAndPings) {
  const std::string bytes = SpdyWriter::Data(5, "abc", true) + SpdyWriter::Ping(7) +
                            SpdyWriter::Reset(9) + SpdyWriter::GoAway();
  SpdyReader reader;
  for (size_t cut = 0; cut < 8; ++cut) {
    absl::string_view rest = absl::string_view(bytes).substr(0, cut);
    const auto none = reader.Next(&rest);
    ASSERT_TRUE(none.ok());
    EXPECT_FALSE(none->has_value());
    EXPECT_EQ(rest.size(), cut);
  }
  absl::string_view rest = bytes;
  const auto data = reader.Next(&rest);
  ASSERT_TRUE(data.ok() && data->has_value());
  EXPECT_EQ((*data)->stream, 5u);
  EXPECT_EQ((*data)->data, "abc");
  EXPECT_TRUE((*data)->is_last);
  const auto ping = reader.Next(&rest);
  ASSERT_TRUE(ping.ok() && ping->has_value());
  EXPECT_EQ((*ping)->kind, SpdyFrame::Kind::kPing);
  EXPECT_EQ((*ping)->stream, 7u);
  const auto reset = reader.Next(&rest);
  ASSERT_TRUE(reset.ok() && reset->has_value());
  EXPECT_EQ((*reset)->kind, SpdyFrame::Kind::kReset);
  const auto end = reader.Next(&rest);
  ASSERT_TRUE(end.ok() && end->has_value());
  EXPECT_EQ((*end)->kind, SpdyFrame::Kind::kGoAway);
  EXPECT_TRUE(rest.empty());
}

TEST(SpdyTest, RefusesWhatIsNone) {
  const auto frame = [](absl::string_view head, uint32_t length, const std::string& payload) {
    std::string bytes(head);
    for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<char>(length >> shift));
    return bytes + payload;
  };
  const std::pair<std::string, const char*> cases[] = {
      {frame(absl::string_view("\x80\x02\0\x06", 4), 4, "abcd"), "another version"},
      {frame(absl::string_view("\x80\x03\0\x01", 4), 4, "abcd"), "too short"},
      {frame(absl::string_view("\x80\x03\0\x06", 4), 2, "ab"), "too short"},
      {frame(absl::string_view("\x80\x03\0\x01", 4), 1 << 20, ""), "too long"},
      {frame(absl::string_view("\0\0\0\x01", 4), 0xffffff, ""), "too long"},
      {frame(absl::string_view("\x80\x03\0\x01", 4), 14, "0123456789junk"), "cannot be inflated"}};
  for (const auto& [bytes, why] : cases) {
    const auto read = First(bytes);
    ASSERT_FALSE(read.ok()) << why;
    EXPECT_THAT(std::string(read.status().message()), HasSubstr(why));
  }
}

TEST(SpdyTest, AcceptsStreamsWithoutHeaders) {
  SpdyWriter writer;
  for (const uint32_t stream : {1u, 3u}) {
    const StatusOr<std::string> reply = writer.Accept(stream);
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(absl::BytesToHexString(reply->substr(0, 4)), "80030002");
    EXPECT_EQ(static_cast<uint32_t>((*reply)[11]), stream);
  }
}

}  // namespace
}  // namespace weft
