// SPDX-License-Identifier: Apache-2.0
// Integers as bytes: fixed width (little-endian) and varint. Take... advance the input and return
// false, leaving it anywhere, when it is cut short or malformed.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "absl/strings/string_view.h"

namespace weft::storage {

static_assert(std::endian::native == std::endian::little, "files hold memory as it is");

inline uint32_t LoadFixed32(const char* p) {
  uint32_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

inline uint64_t LoadFixed64(const char* p) {
  uint64_t value;
  std::memcpy(&value, p, sizeof(value));
  return value;
}

inline void AppendFixed32(uint32_t value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline void AppendFixed64(uint64_t value, std::string* out) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline void AppendVarint(uint64_t value, std::string* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

inline bool TakeVarint64(absl::string_view* input, uint64_t* value) {
  uint64_t result = 0;
  for (int shift = 0; shift < 70 && !input->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>(input->front());
    input->remove_prefix(1);
    if (shift == 63 && byte > 1) return false;
    result |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      *value = result;
      return true;
    }
  }
  return false;
}

inline bool TakeVarint32(absl::string_view* input, uint32_t* value) {
  uint64_t wide = 0;
  if (!TakeVarint64(input, &wide) || wide > UINT32_MAX) return false;
  *value = static_cast<uint32_t>(wide);
  return true;
}

inline bool TakeFixed32(absl::string_view* input, uint32_t* value) {
  if (input->size() < 4) return false;
  *value = LoadFixed32(input->data());
  input->remove_prefix(4);
  return true;
}

}  // namespace weft::storage
