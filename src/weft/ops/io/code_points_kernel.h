// SPDX-License-Identifier: Apache-2.0
// Texts in encodings of Unicode, one code point at a time.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

#include "base/status.h"

namespace weft::ops::io {

enum class Encoding { kUtf8, kUtf16Be, kUtf16Le, kUtf32Be, kUtf32Le, kLatin1, kAscii };

// By its name, in any case and with or without dashes. InvalidArgument for others.
StatusOr<Encoding> EncodingByName(absl::string_view name);

// The character at the start of a text.
struct CodePoint {
  int32_t value = 0;
  size_t length = 0;  // in bytes
  bool is_good = true;
};
// Of a text that is not empty. What is malformed is as long as its longest well-formed beginning.
CodePoint FirstCodePoint(Encoding encoding, absl::string_view text);

// True for what a text may hold: a number of Unicode that is no surrogate.
bool IsCharacter(int32_t value);
// UTF-8, or big-endian UTF-16 or UTF-32.
void AppendCodePoint(Encoding encoding, int32_t value, std::string* text);

}  // namespace weft::ops::io
