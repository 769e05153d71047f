// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli), in hardware where the processor has it. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"

namespace weft {

// The checksum of A followed by `data`, where `crc` is the checksum of A (0 for nothing).
uint32_t Crc32cExtend(uint32_t crc, absl::string_view data);
inline uint32_t Crc32c(absl::string_view data) { return Crc32cExtend(0, data); }

// The form that TFRecord and tables store, so that a checksum of bytes that hold checksums stays
// good.
constexpr uint32_t kCrc32cMaskDelta = 0xa282ead8u;
constexpr uint32_t MaskCrc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + kCrc32cMaskDelta;
}
constexpr uint32_t UnmaskCrc32c(uint32_t masked) {
  const uint32_t rotated = masked - kCrc32cMaskDelta;
  return (rotated >> 17) | (rotated << 15);
}

namespace crc32c_internal {
uint32_t ExtendPortable(uint32_t crc, absl::string_view data);
bool HasHardware();
// Only where HasHardware().
uint32_t ExtendHardware(uint32_t crc, absl::string_view data);
}  // namespace crc32c_internal

}  // namespace weft
