// SPDX-License-Identifier: Apache-2.0
// 16- and 8-bit floating point: storage with conversions to float. Arithmetic is done in float and
// rounded to nearest even, as TensorFlow does.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace weft {

// IEEE 754 binary16.
struct Half {
  uint16_t bits = 0;

  Half() = default;
  Half(float value) : bits(FromFloat(value)) {}     // NOLINT(google-explicit-constructor): a number
  operator float() const { return ToFloat(bits); }  // NOLINT(google-explicit-constructor)
  static Half FromBits(uint16_t bits) {
    Half half;
    half.bits = bits;
    return half;
  }

 private:
  static float ToFloat(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
    uint32_t exponent = (half >> 10) & 0x1f;
    uint32_t mantissa = half & 0x3ffu;
    if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
    if (exponent == 0) {
      const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
      return sign != 0 ? -magnitude : magnitude;
    }
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  }

  static uint16_t FromFloat(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
    const uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude >= 0x7f800000u) {  // infinity or NaN
      const uint32_t payload = magnitude > 0x7f800000u ? 0x200u | ((magnitude >> 13) & 0x3ffu) : 0;
      return static_cast<uint16_t>(sign | 0x7c00u | payload);
    }
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // rounds to inf
    if (magnitude < 0x38800000u) {  // subnormal half: let the float adder round
      const float scaled = std::bit_cast<float>(magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(scaled) - 0x3f000000u));
    }
    const uint32_t odd = (magnitude >> 13) & 1u;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000u + 0xfffu + odd) >> 13));
  }
};

// The upper half of a binary32.
struct Bfloat16 {
  uint16_t bits = 0;

  Bfloat16() = default;
  Bfloat16(float value)
      : bits(FromFloat(value)) {}  // NOLINT(google-explicit-constructor): a number
  operator float() const {         // NOLINT(google-explicit-constructor)
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  }
  static Bfloat16 FromBits(uint16_t bits) {
    Bfloat16 value;
    value.bits = bits;
    return value;
  }

 private:
  static uint16_t FromFloat(float value) {
    if (std::isnan(value)) return std::signbit(value) ? 0xffc0 : 0x7fc0;
    const uint32_t word = std::bit_cast<uint32_t>(value);
    return static_cast<uint16_t>((word + 0x7fffu + ((word >> 16) & 1u)) >> 16);
  }
};

// 8-bit floats of the OCP format: conversions go through float, rounding to nearest even.
struct Float8E5m2 {
  uint8_t bits = 0;
  Float8E5m2() = default;
  explicit Float8E5m2(float value);
  explicit operator float() const;
};
struct Float8E4m3fn {
  uint8_t bits = 0;
  Float8E4m3fn() = default;
  explicit Float8E4m3fn(float value);
  explicit operator float() const;
};

}  // namespace weft
