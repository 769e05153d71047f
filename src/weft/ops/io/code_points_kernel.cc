// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/io/code_points_kernel.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"

namespace weft::ops::io {
namespace {

uint32_t Byte(absl::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

bool IsSurrogate(int32_t value) { return value >= 0xD800 && value <= 0xDFFF; }

CodePoint FirstUtf8(absl::string_view text) {
  const uint32_t lead = Byte(text, 0);
  if (lead < 0x80) return {static_cast<int32_t>(lead), 1};
  const size_t length = lead >= 0xC2 && lead < 0xE0   ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0) return {0, 1, false};
  uint32_t value = lead & (0xFFu >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    if (i >= text.size()) return {0, i, false};
    const uint32_t next = Byte(text, i);
    // Some second bytes would make a longer form than needed, a surrogate, or too large a number.
    uint32_t low = 0x80, high = 0xBF;
    if (i == 1 && lead == 0xE0) low = 0xA0;
    if (i == 1 && lead == 0xED) high = 0x9F;
    if (i == 1 && lead == 0xF0) low = 0x90;
    if (i == 1 && lead == 0xF4) high = 0x8F;
    if (next < low || next > high) return {0, i, false};
    value = value << 6 | (next & 0x3F);
  }
  return {static_cast<int32_t>(value), length};
}

CodePoint FirstUtf16(absl::string_view text, bool big) {
  const auto unit = [&](size_t at) {
    return big ? Byte(text, at) << 8 | Byte(text, at + 1)
               : Byte(text, at + 1) << 8 | Byte(text, at);
  };
  if (text.size() < 2) return {0, text.size(), false};
  const uint32_t first = unit(0);
  if (!IsSurrogate(static_cast<int32_t>(first))) return {static_cast<int32_t>(first), 2};
  if (first >= 0xDC00) return {0, 2, false};
  if (text.size() < 4) return {0, text.size(), false};
  const uint32_t second = unit(2);
  if (second < 0xDC00 || second > 0xDFFF) return {0, 2, false};
  return {static_cast<int32_t>(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)), 4};
}

CodePoint FirstUtf32(absl::string_view text, bool big) {
  if (text.size() < 4) return {0, text.size(), false};
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | Byte(text, big ? i : 3 - i);
  const bool good = value <= 0x10FFFF && !IsSurrogate(static_cast<int32_t>(value));
  return {good ? static_cast<int32_t>(value) : 0, 4, good};
}

}  // namespace

StatusOr<Encoding> EncodingByName(absl::string_view name) {
  const std::string plain =
      absl::StrReplaceAll(absl::AsciiStrToUpper(name), {{"-", ""}, {"_", ""}});
  if (plain == "UTF8") return Encoding::kUtf8;
  if (plain == "UTF16BE") return Encoding::kUtf16Be;
  if (plain == "UTF16LE") return Encoding::kUtf16Le;
  if (plain == "UTF32BE") return Encoding::kUtf32Be;
  if (plain == "UTF32LE") return Encoding::kUtf32Le;
  if (plain == "ISO88591" || plain == "LATIN1") return Encoding::kLatin1;
  if (plain == "USASCII" || plain == "ASCII") return Encoding::kAscii;
  return InvalidArgument("Could not create converter for input encoding: ", name,
                         "; expected UTF-8, UTF-16-BE, UTF-16-LE, UTF-32-BE, UTF-32-LE, "
                         "ISO-8859-1 or US-ASCII");
}

CodePoint FirstCodePoint(Encoding encoding, absl::string_view text) {
  switch (encoding) {
    case Encoding::kUtf8:
      return FirstUtf8(text);
    case Encoding::kUtf16Be:
    case Encoding::kUtf16Le:
      return FirstUtf16(text, encoding == Encoding::kUtf16Be);
    case Encoding::kUtf32Be:
    case Encoding::kUtf32Le:
      return FirstUtf32(text, encoding == Encoding::kUtf32Be);
    case Encoding::kLatin1:
      return {static_cast<int32_t>(Byte(text, 0)), 1};
    case Encoding::kAscii:
      return {static_cast<int32_t>(Byte(text, 0)), 1, Byte(text, 0) < 0x80};
  }
  return {0, 1, false};
}

bool IsCharacter(int32_t value) { return value >= 0 && value <= 0x10FFFF && !IsSurrogate(value); }

void AppendCodePoint(Encoding encoding, int32_t value, std::string* text) {
  const auto v = static_cast<uint32_t>(value);
  const auto append = [&](uint32_t byte) { text->push_back(static_cast<char>(byte & 0xFF)); };
  if (encoding == Encoding::kUtf32Be) {
    for (int shift = 24; shift >= 0; shift -= 8) append(v >> shift);
  } else if (encoding == Encoding::kUtf16Be) {
    const auto unit = [&](uint32_t u) {
      append(u >> 8);
      append(u);
    };
    if (v < 0x10000) return unit(v);
    unit(0xD800 + ((v - 0x10000) >> 10));
    unit(0xDC00 + ((v - 0x10000) & 0x3FF));
  } else if (v < 0x80) {
    append(v);
  } else {
    const int more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
    constexpr uint32_t kLeads[] = {0, 0xC0, 0xE0, 0xF0};
    append(kLeads[more] | v >> (6 * more));
    for (int i = more - 1; i >= 0; --i) append(0x80 | (v >> (6 * i) & 0x3F));
  }
}

}  // namespace weft::ops::io
