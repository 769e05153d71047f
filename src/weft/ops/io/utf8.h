// SPDX-License-Identifier: Apache-2.0
// Parts of strings, by bytes and by UTF-8 characters. A byte that starts no character counts as
// one.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::ops::io {

// Length of the character at the start of `text`, which is not empty.
inline size_t Utf8Length(absl::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return length < text.size() ? length : text.size();
}

inline int64_t CountUtf8(absl::string_view text) {
  int64_t count = 0;
  for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xc0) != 0x80 ? 1 : 0;
  return count;
}

// `length` bytes from `position` on, as many as there are; a position below 0 counts from the end.
inline StatusOr<absl::string_view> BytePart(absl::string_view text, int64_t position,
                                            int64_t length) {
  const auto size = static_cast<int64_t>(text.size());
  if (position < -size || position > size) return InvalidArgument("position out of range");
  const int64_t start = position < 0 ? position + size : position;
  return text.substr(static_cast<size_t>(start), static_cast<size_t>(length < 0 ? 0 : length));
}

// The same by characters.
inline StatusOr<absl::string_view> Utf8Part(absl::string_view text, int64_t position,
                                            int64_t length) {
  const int64_t size = CountUtf8(text);
  if (position < -size || position > size) return InvalidArgument("position out of range");
  int64_t start = position < 0 ? position + size : position;
  while (start-- > 0 && !text.empty()) text.remove_prefix(Utf8Length(text));
  size_t end = 0;
  while (length-- > 0 && end < text.size()) end += Utf8Length(text.substr(end));
  return text.substr(0, end);
}

}  // namespace weft::ops::io
