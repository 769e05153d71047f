// SPDX-License-Identifier: Apache-2.0
// Any bytes as a picture or as sound: refused, or decoded into the memory that was asked for.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/storage/gif.h"
#include "weft/storage/jpeg.h"
#include "weft/storage/png_codec.h"
#include "weft/storage/wav.h"

namespace {

constexpr int64_t kMost = int64_t{1} << 24;

// Memory of the size, and a byte at its end that tells whether it was enough.
template <typename T>
T* Take(std::vector<uint8_t>* memory, int64_t bytes) {
  if (bytes > kMost) return nullptr;
  memory->resize(static_cast<size_t>(bytes));
  return reinterpret_cast<T*>(memory->data());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  std::vector<uint8_t> memory;
  for (const bool recovers : {false, true}) {
    (void)weft::storage::DecodeJpeg(
        bytes, {.recovers_truncated = recovers}, [&](const weft::storage::JpegSize& s) {
          return Take<uint8_t>(&memory, s.height * s.width * s.channels);
        });
  }
  (void)weft::storage::JpegSizeOf(bytes);
  (void)weft::storage::DecodeGif(bytes, false, [&](const weft::storage::GifSize& s) {
    return Take<uint8_t>(&memory, s.frames * s.height * s.width * 3);
  });
  for (const int bits : {8, 16}) {
    (void)weft::storage::DecodePng(bytes, 0, bits, [&](const weft::storage::PngSize& s) {
      return Take<void>(&memory, s.height * s.width * s.channels * bits / 8);
    });
  }
  if (const auto sound = weft::storage::DecodeWav(bytes); sound.ok() && sound->num_frames() > 0) {
    (void)sound->At(sound->num_frames() - 1, sound->channels - 1);
  }
  return 0;
}
