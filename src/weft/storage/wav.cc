// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/wav.h"

#include <algorithm>
#include <cmath>

namespace weft::storage {
namespace {

void AppendLittle(std::string* out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

int16_t ToInt16(float sample) {
  const float scaled = std::round(sample * 32768.0f);
  if (std::isnan(scaled)) return 0;
  return static_cast<int16_t>(std::clamp(scaled, -32768.0f, 32767.0f));
}

}  // namespace

StatusOr<std::string> EncodeWav(absl::Span<const float> samples, int64_t channels,
                                int64_t sample_rate) {
  constexpr uint64_t kMostBytes = 0xffff'0000u;
  const uint64_t data_bytes = samples.size() * 2;
  if (channels <= 0 || channels > 0xffff || samples.size() % static_cast<uint64_t>(channels) != 0 ||
      data_bytes > kMostBytes) {
    return InvalidArgument(samples.size(), " samples are no sound of ", channels, " channels");
  }
  const uint64_t bytes_a_second = static_cast<uint64_t>(std::max<int64_t>(0, sample_rate)) *
                                  static_cast<uint64_t>(channels) * 2;
  if (sample_rate <= 0 || bytes_a_second > 0xffff'ffffu) {
    return InvalidArgument("The sample rate must be positive and fit 32 bits, got ", sample_rate);
  }
  std::string out = "RIFF";
  out.reserve(44 + data_bytes);
  AppendLittle(&out, static_cast<uint32_t>(36 + data_bytes), 4);
  out += "WAVEfmt ";
  AppendLittle(&out, 16, 4);  // length of what describes the format
  AppendLittle(&out, 1, 2);   // PCM
  AppendLittle(&out, static_cast<uint32_t>(channels), 2);
  AppendLittle(&out, static_cast<uint32_t>(sample_rate), 4);
  AppendLittle(&out, static_cast<uint32_t>(bytes_a_second), 4);
  AppendLittle(&out, static_cast<uint32_t>(channels * 2), 2);
  AppendLittle(&out, 16, 2);  // bits a sample
  out += "data";
  AppendLittle(&out, static_cast<uint32_t>(data_bytes), 4);
  for (const float sample : samples) {
    AppendLittle(&out, static_cast<uint16_t>(ToInt16(sample)), 2);
  }
  return out;
}

}  // namespace weft::storage
