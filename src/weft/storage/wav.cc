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

namespace {

// Reads a file from its beginning; each step fails where the bytes end.
class WavScanner {
 public:
  explicit WavScanner(absl::string_view bytes) : rest_(bytes) {}
  bool done() const { return rest_.empty(); }

  StatusOr<absl::string_view> Take(size_t n) {
    if (n > rest_.size()) return InvalidArgument("Data too short when trying to read string");
    const absl::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  StatusOr<uint32_t> Number(size_t width) {
    WEFT_ASSIGN_OR_RETURN(const absl::string_view bytes, Take(width));
    uint32_t value = 0;
    for (size_t i = width; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    return value;
  }
  Status Expect(absl::string_view text) {
    WEFT_ASSIGN_OR_RETURN(const absl::string_view found, Take(text.size()));
    if (found == text) return absl::OkStatus();
    return InvalidArgument("Header mismatch: Expected ", text, " but found ", found);
  }

 private:
  absl::string_view rest_;
};

// Chunks of other programs that may stand before the format.
bool MayBeSkipped(absl::string_view id) {
  for (const char* known : {"JUNK", "bext", "iXML", "qlty", "mext", "levl", "link", "axml"}) {
    if (id == known) return true;
  }
  return false;
}

Status ReadFormat(WavScanner* scanner, WavSound* sound) {
  WEFT_ASSIGN_OR_RETURN(const uint32_t size, scanner->Number(4));
  if (size != 16 && size != 18) {
    return InvalidArgument("Bad format chunk size for WAV: Expected 16 or 18, but got", size);
  }
  WEFT_ASSIGN_OR_RETURN(const uint32_t format, scanner->Number(2));
  if (format != 1) {
    return InvalidArgument("Bad audio format for WAV: Expected 1 (PCM), but got", format);
  }
  WEFT_ASSIGN_OR_RETURN(const uint32_t channels, scanner->Number(2));
  if (channels < 1) {
    return InvalidArgument("Bad number of channels for WAV: Expected at least 1, but got ",
                           channels);
  }
  WEFT_ASSIGN_OR_RETURN(const uint32_t rate, scanner->Number(4));
  WEFT_ASSIGN_OR_RETURN(const uint32_t bytes_per_second, scanner->Number(4));
  WEFT_ASSIGN_OR_RETURN(const uint32_t bytes_per_frame, scanner->Number(2));
  WEFT_ASSIGN_OR_RETURN(const uint32_t bits, scanner->Number(2));
  if (bits != 16) return InvalidArgument("Can only read 16-bit WAV files, but received ", bits);
  if (bytes_per_frame != 2 * channels) {
    return InvalidArgument("Bad bytes per sample in WAV header: Expected ", 2 * channels,
                           " but got ", bytes_per_frame);
  }
  if (bytes_per_second != bytes_per_frame * rate) {
    return InvalidArgument("Bad bytes per second in WAV header: Expected ", bytes_per_frame * rate,
                           " but got ", bytes_per_second, " (sample_rate=", rate,
                           ", bytes_per_sample=", bytes_per_frame, ")");
  }
  sound->channels = channels;
  sound->sample_rate = rate;
  return size == 18 ? scanner->Take(2).status() : absl::OkStatus();
}

}  // namespace

StatusOr<WavSound> DecodeWav(absl::string_view file) {
  WavScanner scanner(file);
  WavSound sound;
  WEFT_RETURN_IF_ERROR(scanner.Expect("RIFF"));
  WEFT_RETURN_IF_ERROR(scanner.Number(4).status());
  WEFT_RETURN_IF_ERROR(scanner.Expect("WAVE"));
  WEFT_ASSIGN_OR_RETURN(absl::string_view id, scanner.Take(4));
  while (id != "fmt ") {
    if (!MayBeSkipped(id)) return InvalidArgument("Unexpected field ", id);
    WEFT_ASSIGN_OR_RETURN(const uint32_t size, scanner.Number(4));
    WEFT_RETURN_IF_ERROR(scanner.Take(size).status());
    WEFT_ASSIGN_OR_RETURN(id, scanner.Take(4));
  }
  WEFT_RETURN_IF_ERROR(ReadFormat(&scanner, &sound));
  bool has_data = false;
  while (!scanner.done()) {
    WEFT_ASSIGN_OR_RETURN(id, scanner.Take(4));
    WEFT_ASSIGN_OR_RETURN(const uint32_t size, scanner.Number(4));
    if (size > 0x7fffffffu) {
      return InvalidArgument("WAV data chunk '", id, "' is too large: ", size,
                             " bytes, but the limit is ", 0x7fffffff);
    }
    if (id != "data") {
      // Chunks that end after the file are as good as those that end with it.
      if (!scanner.Take(size).ok()) break;
      continue;
    }
    if (has_data) return InvalidArgument("More than one data chunk found in WAV");
    has_data = true;
    const auto frame = static_cast<uint32_t>(2 * sound.channels);
    WEFT_ASSIGN_OR_RETURN(sound.bytes, scanner.Take(size / frame * frame));
  }
  if (!has_data) return InvalidArgument("No data chunk found in WAV");
  return sound;
}

}  // namespace weft::storage
