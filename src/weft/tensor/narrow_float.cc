// SPDX-License-Identifier: Apache-2.0
#include "weft/tensor/narrow_float.h"

#include <algorithm>

namespace weft {
namespace {

// Decodes an 8-bit float of `mantissa_bits` and exponent bias `bias` without its specials.
float Decode(uint8_t bits, int mantissa_bits, int bias) {
  const int exponent = (bits & 0x7f) >> mantissa_bits;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const float scale = 1.0f / static_cast<float>(1 << mantissa_bits);
  const float magnitude =
      exponent == 0 ? std::ldexp(static_cast<float>(mantissa) * scale, 1 - bias)
                    : std::ldexp(1.0f + static_cast<float>(mantissa) * scale, exponent - bias);
  return (bits & 0x80) != 0 ? -magnitude : magnitude;
}

// Rounds a finite magnitude to the nearest code below `infinity_code`; ties to even.
uint8_t Encode(float magnitude, int mantissa_bits, int bias) {
  if (magnitude == 0) return 0;
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  exponent = std::max(exponent - 1, 1 - bias);
  const float quantum = std::ldexp(1.0f, exponent - mantissa_bits);
  const int64_t units = static_cast<int64_t>(std::nearbyint(magnitude / quantum));
  const int64_t code = (static_cast<int64_t>(exponent + bias - 1) << mantissa_bits) + units;
  return static_cast<uint8_t>(std::min<int64_t>(code, 0xff));
}

}  // namespace

Float8E5m2::Float8E5m2(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  if (std::isnan(value)) {
    bits = sign | 0x7e;
  } else if (std::isinf(value)) {
    bits = sign | 0x7c;
  } else {
    const uint8_t code = Encode(std::fabs(value), 2, 15);
    bits = sign | (code > 0x7c ? 0x7c : code);
  }
}

Float8E5m2::operator float() const {
  if ((bits & 0x7f) > 0x7c) return std::nanf("");
  if ((bits & 0x7f) == 0x7c) return (bits & 0x80) != 0 ? -INFINITY : INFINITY;
  return Decode(bits, 2, 15);
}

Float8E4m3fn::Float8E4m3fn(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const uint8_t code = std::isfinite(value) ? Encode(std::fabs(value), 3, 7) : 0x7f;
  bits = sign | (code > 0x7f ? 0x7f : code);
}

Float8E4m3fn::operator float() const {
  if ((bits & 0x7f) == 0x7f) return std::nanf("");
  return Decode(bits, 3, 7);
}

}  // namespace weft
