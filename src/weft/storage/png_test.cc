// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/png.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/storage/wav.h"

namespace weft::storage {
namespace {

TEST(PngTest, BeginsAsPicturesDoAndSaysItsSize) {
  const std::vector<uint8_t> pixels(3 * 2 * 3, 200);
  StatusOr<std::string> png = EncodePng(pixels, 2, 3, 3);
  ASSERT_TRUE(png.ok()) << png.status();
  ASSERT_GT(png->size(), 24u);
  EXPECT_EQ(png->substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(png->substr(16, 8), std::string("\0\0\0\3\0\0\0\2", 8));
}

TEST(PngTest, RefusesWhatIsNoPicture) {
  const std::vector<uint8_t> pixels(12, 1);
  EXPECT_FALSE(EncodePng(pixels, 2, 3, 2).ok());
  EXPECT_FALSE(EncodePng(pixels, 2, 3, 1).ok());
  EXPECT_FALSE(EncodePng({}, 0, 3, 1).ok());
  EXPECT_FALSE(EncodePng(pixels, int64_t{1} << 40, int64_t{1} << 40, 1).ok());
}

TEST(WavTest, WritesHeaderAndClampedSamples) {
  const std::vector<float> samples = {0, 1, -1, 2, -2, 0.5f};
  StatusOr<std::string> wav = EncodeWav(samples, 2, 8000);
  ASSERT_TRUE(wav.ok()) << wav.status();
  ASSERT_EQ(wav->size(), 44u + 12u);
  EXPECT_EQ(wav->substr(0, 4), "RIFF");
  EXPECT_EQ(wav->substr(8, 8), "WAVEfmt ");
  const auto sample = [&](int i) {
    return static_cast<int16_t>(static_cast<uint8_t>((*wav)[44 + 2 * i]) |
                                static_cast<uint8_t>((*wav)[45 + 2 * i]) << 8);
  };
  EXPECT_EQ(sample(0), 0);
  EXPECT_EQ(sample(1), 32767);
  EXPECT_EQ(sample(2), -32768);
  EXPECT_EQ(sample(3), 32767);
  EXPECT_EQ(sample(4), -32768);
  EXPECT_EQ(sample(5), 16384);
  EXPECT_FALSE(EncodeWav(samples, 0, 8000).ok());
  EXPECT_FALSE(EncodeWav(samples, 4, 8000).ok());
  EXPECT_FALSE(EncodeWav(samples, 1, 0).ok());
}

}  // namespace
}  // namespace weft::storage
