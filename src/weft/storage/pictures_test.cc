// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "weft/storage/gif.h"
#include "weft/storage/jpeg.h"
#include "weft/storage/png_codec.h"
#include "weft/storage/wav.h"

namespace weft::storage {
namespace {

using Pixels = std::vector<uint8_t>;

Pixels Ramp(int64_t n) {
  Pixels pixels(static_cast<size_t>(n));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 5);
  return pixels;
}

StatusOr<Pixels> FromPng(absl::string_view bytes) {
  Pixels pixels;
  WEFT_RETURN_IF_ERROR(DecodePng(bytes, 0, 8, [&](const PngSize& s) -> void* {
    pixels.resize(static_cast<size_t>(s.height * s.width * s.channels));
    return pixels.data();
  }));
  return pixels;
}
StatusOr<Pixels> FromJpeg(absl::string_view bytes) {
  Pixels pixels;
  WEFT_RETURN_IF_ERROR(DecodeJpeg(bytes, {}, [&](const JpegSize& s) {
    pixels.resize(static_cast<size_t>(s.height * s.width * s.channels));
    return pixels.data();
  }));
  return pixels;
}

TEST(PngTest, GivesBackWhatWentIn) {
  for (int64_t channels = 1; channels <= 4; ++channels) {
    const Pixels pixels = Ramp(5 * 7 * channels);
    const auto bytes = EncodePngFile(pixels.data(), {5, 7, channels}, 8, -1);
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    EXPECT_EQ(*FromPng(*bytes), pixels);
  }
}

TEST(PngTest, RefusesEveryCut) {
  const Pixels pixels = Ramp(5 * 7 * 3);
  const auto bytes = EncodePngFile(pixels.data(), {5, 7, 3}, 8, -1);
  for (size_t n = 0; n < bytes->size(); ++n) {
    EXPECT_FALSE(FromPng(absl::string_view(*bytes).substr(0, n)).ok()) << n;
  }
}

TEST(PngTest, RefusesASizeThatItsBytesCannotHold) {
  const Pixels pixels = Ramp(3);
  std::string bytes = *EncodePngFile(pixels.data(), {1, 1, 3}, 8, -1);
  bytes[17] = 1;  // 65537 wide; the checksum of the header no longer holds either
  EXPECT_FALSE(FromPng(bytes).ok());
}

TEST(JpegTest, IsCloseToWhatWentIn) {
  const Pixels pixels(16 * 16 * 3, 120);
  const auto bytes = EncodeJpeg(pixels, {16, 16, 3}, {});
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto size = JpegSizeOf(*bytes);
  ASSERT_TRUE(size.ok()) << size.status();
  EXPECT_EQ(size->height, 16);
  EXPECT_EQ(size->channels, 3);
  const auto back = FromJpeg(*bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_THAT(*back, testing::Each(testing::AllOf(testing::Ge(117), testing::Le(123))));
}

TEST(JpegTest, CutsAreRefusedOrRecovered) {
  const std::string bytes = *EncodeJpeg(Ramp(24 * 24 * 3), {24, 24, 3}, {});
  for (size_t n = 0; n + 2 < bytes.size(); ++n) {
    const absl::string_view cut = absl::string_view(bytes).substr(0, n);
    Pixels pixels;
    const Status recovered = DecodeJpeg(cut, {.recovers_truncated = true}, [&](const JpegSize& s) {
      pixels.resize(static_cast<size_t>(s.height * s.width * s.channels));
      return pixels.data();
    });
    if (recovered.ok()) {
      EXPECT_EQ(pixels.size(), 24u * 24 * 3) << n;
    }
  }
  EXPECT_FALSE(FromJpeg(bytes.substr(0, bytes.size() / 2)).ok());
}

TEST(JpegTest, ASizeThatItsBytesCannotHoldTakesNoMemory) {
  std::string bytes = *EncodeJpeg(Ramp(8 * 8 * 3), {8, 8, 3}, {});
  const size_t frame = bytes.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  bytes.replace(frame + 5, 4, "\x60\x60\x60\x60");  // 24672 x 24672
  bool is_asked = false;
  const Status status = DecodeJpeg(bytes, {}, [&](const JpegSize&) -> uint8_t* {
    is_asked = true;
    return nullptr;
  });
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(is_asked);
}

TEST(GifTest, AFrameThatItsBytesCannotHoldTakesNoMemory) {
  std::string bytes("GIF89a\xff\xff\xff\xff\x80\0\0\0\0\0\xff\xff\xff", 19);
  bytes += std::string("\x2c\0\0\0\0\xff\xff\xff\xff\0\x02\x02\x44\x01\0;", 16);
  bool is_asked = false;
  const Status status = DecodeGif(bytes, false, [&](const GifSize&) -> uint8_t* {
    is_asked = true;
    return nullptr;
  });
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(is_asked);
}

TEST(WavTest, GivesBackWhatWentInAndRefusesCuts) {
  const std::vector<float> samples = {0, 0.5f, -0.5f, 0.25f};
  const std::string bytes = *EncodeWav(samples, 2, 8000);
  const auto sound = DecodeWav(bytes);
  ASSERT_TRUE(sound.ok()) << sound.status();
  EXPECT_EQ(sound->num_frames(), 2);
  EXPECT_EQ(sound->sample_rate, 8000);
  EXPECT_EQ(sound->At(0, 1), 0.5f);
  EXPECT_EQ(sound->At(1, 0), -0.5f);
  for (size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(DecodeWav(absl::string_view(bytes).substr(0, n)).ok()) << n;
  }
}

}  // namespace
}  // namespace weft::storage
