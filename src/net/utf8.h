// SPDX-License-Identifier: Apache-2.0
// Text from elsewhere, for formats that take UTF-8 only.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace weft {

// Where the first byte stands that is not UTF-8, or npos.
size_t FindBadUtf8(absl::string_view text);
// The text with "\xff" written out for each byte that is not UTF-8.
std::string EscapeBadUtf8(absl::string_view text);
// The first of `text`, at most so many bytes, without the part of a character at its end.
absl::string_view CutUtf8(absl::string_view text, size_t most_bytes);

}  // namespace weft
