// SPDX-License-Identifier: Apache-2.0
#include "net/utf8.h"

#include "absl/strings/str_cat.h"

namespace weft {

size_t FindBadUtf8(absl::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const auto byte = [&](size_t i) {
      return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
    };
    const unsigned lead = byte(0);
    const size_t length = lead < 0x80   ? 1
                          : lead < 0xc2 ? 0
                          : lead < 0xe0 ? 2
                          : lead < 0xf0 ? 3
                          : lead < 0xf5 ? 4
                                        : 0;
    if (length == 0) return at;
    for (size_t i = 1; i < length; ++i) {
      if ((byte(i) & 0xc0) != 0x80) return at;
    }
    const bool is_overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
    const bool is_outside = (lead == 0xed && byte(1) >= 0xa0) || (lead == 0xf4 && byte(1) >= 0x90);
    if (is_overlong || is_outside) return at;
    at += length;
  }
  return absl::string_view::npos;
}

std::string EscapeBadUtf8(absl::string_view text) {
  std::string escaped;
  for (size_t bad = FindBadUtf8(text); bad != absl::string_view::npos; bad = FindBadUtf8(text)) {
    const auto byte = static_cast<unsigned char>(text[bad]);
    absl::StrAppend(&escaped, text.substr(0, bad), "\\x", absl::Hex(byte, absl::kZeroPad2));
    text.remove_prefix(bad + 1);
  }
  return absl::StrCat(escaped, text);
}

absl::string_view CutUtf8(absl::string_view text, size_t most_bytes) {
  size_t end = most_bytes;
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return text.substr(0, end);
}

}  // namespace weft
