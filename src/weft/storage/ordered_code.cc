// SPDX-License-Identifier: Apache-2.0
#include "weft/storage/ordered_code.h"

#include <bit>

namespace weft::storage {
namespace {

// The low `count` bytes, highest first.
void AppendBigEndian(uint64_t value, int count, std::string* out) {
  for (int i = count - 1; i >= 0; --i) out->push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

void AppendOrderedNumber(uint64_t value, std::string* out) {
  const int count = (std::bit_width(value) + 7) / 8;
  out->push_back(static_cast<char>(count));
  AppendBigEndian(value, count, out);
}

// As many ones in front as there are bytes, a zero, then the value: 7 bits a byte, one of them the
// sign. A negative value has all its bits turned over.
void AppendOrderedSigned(int64_t value, std::string* out) {
  const uint64_t magnitude = static_cast<uint64_t>(value < 0 ? ~value : value);
  const int count = std::bit_width(magnitude) / 7 + 1;
  const uint8_t flip = value < 0 ? 0xff : 0;
  std::string bytes;
  if (count > 8) bytes.append(static_cast<size_t>(count) - 8, '\0');
  AppendBigEndian(magnitude, count > 8 ? 8 : count, &bytes);
  for (int i = 0; i < count; ++i) bytes[i / 8] |= static_cast<char>(0x80 >> (i % 8));
  for (char& byte : bytes) byte = static_cast<char>(static_cast<uint8_t>(byte) ^ flip);
  out->append(bytes);
}

// Zero and 0xff are escaped; zero, one ends the text, so that a prefix sorts first.
void AppendOrderedString(absl::string_view text, std::string* out) {
  for (const char c : text) {
    out->push_back(c);
    if (c == '\0') out->push_back('\xff');
    if (c == '\xff') out->push_back('\0');
  }
  out->append("\0\1", 2);
}

}  // namespace weft::storage
