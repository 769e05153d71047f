// SPDX-License-Identifier: Apache-2.0
#include "base/crc32c.h"

#include <random>
#include <string>

#include "gtest/gtest.h"

namespace weft {
namespace {

using crc32c_internal::ExtendHardware;
using crc32c_internal::ExtendPortable;
using crc32c_internal::HasHardware;

// RFC 3720, appendix B.4.
TEST(Crc32cTest, MatchesThePublishedValues) {
  std::string ascending(32, '\0');
  for (size_t i = 0; i < 32; ++i) ascending[i] = static_cast<char>(i);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

TEST(Crc32cTest, HardwareAndPortableAgreeAtEveryLength) {
  if (!HasHardware()) GTEST_SKIP() << "no SSE 4.2 here";
  std::mt19937 random(7);
  std::string data(100000, '\0');
  for (char& c : data) c = static_cast<char>(random());
  for (size_t length = 0; length < 1600; ++length) {
    const absl::string_view part = absl::string_view(data).substr(length % 13, length);
    ASSERT_EQ(ExtendHardware(0, part), ExtendPortable(0, part)) << length;
  }
  for (size_t length : {3 * 8192 - 1, 3 * 8192, 3 * 8192 + 1, 99999, 100000}) {
    const absl::string_view part = absl::string_view(data).substr(0, length);
    ASSERT_EQ(ExtendHardware(17, part), ExtendPortable(17, part)) << length;
  }
}

TEST(Crc32cTest, ExtendsAcrossPieces) {
  const std::string data(5000, 'x');
  for (size_t cut : {0u, 1u, 7u, 768u, 4999u, 5000u}) {
    EXPECT_EQ(Crc32cExtend(Crc32c(data.substr(0, cut)), data.substr(cut)), Crc32c(data)) << cut;
  }
}

TEST(Crc32cTest, MasksAndUnmasks) {
  for (uint32_t crc : {0u, 1u, 0xe3069283u, 0xffffffffu}) {
    EXPECT_NE(MaskCrc32c(crc), crc);
    EXPECT_EQ(UnmaskCrc32c(MaskCrc32c(crc)), crc);
  }
}

}  // namespace
}  // namespace weft
