// SPDX-License-Identifier: Apache-2.0
// Random words to numbers, in TensorFlow's order and rounding.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/ops/random/philox_kernel.h"
#include "weft/tensor/dtype.h"

namespace weft::ops {

// Numbers of type T that one step of four words gives.
template <typename T>
inline constexpr int kPerStep = sizeof(T) == 8 ? 2 : 4;

// [0, 1): the words' low bits are the mantissa.
template <typename T>
T UniformFrom(const uint32_t* words) {
  if constexpr (std::is_same_v<T, double>) {
    const uint64_t mantissa = uint64_t{words[0] & 0xfffffu} << 32 | words[1];
    return std::bit_cast<double>(uint64_t{1023} << 52 | mantissa) - 1.0;
  } else if constexpr (std::is_same_v<T, Half>) {
    return Half(
        static_cast<float>(Half::FromBits(static_cast<uint16_t>(15 << 10 | (words[0] & 0x3ffu)))) -
        1.0f);
  } else if constexpr (std::is_same_v<T, Bfloat16>) {
    const auto bits = static_cast<uint16_t>(127 << 7 | (words[0] & 0x7fu));
    return Bfloat16(static_cast<float>(Bfloat16::FromBits(bits)) - 1.0f);
  } else {
    return std::bit_cast<float>(uint32_t{127} << 23 | (words[0] & 0x7fffffu)) - 1.0f;
  }
}

// Two normal numbers from two uniform ones (Box and Muller): words[0..1], or words[0..3] for
// double.
template <typename T>
void NormalPair(const uint32_t* words, T* pair) {
  if constexpr (std::is_same_v<T, double>) {
    const double u = std::max(UniformFrom<double>(words), 1.0e-7);
    const double angle = 2 * M_PI * UniformFrom<double>(words + 2);
    const double radius = std::sqrt(-2.0 * std::log(u));
    pair[0] = std::sin(angle) * radius;
    pair[1] = std::cos(angle) * radius;
  } else {
    const float u = std::max(UniformFrom<float>(words), 1.0e-7f);
    const float angle = static_cast<float>(2.0f * M_PI * UniformFrom<float>(words + 1));
    const float radius = std::sqrt(-2.0f * std::log(u));
    pair[0] = std::sin(angle) * radius;
    pair[1] = std::cos(angle) * radius;
  }
}

// float for narrow floats: what normal numbers are computed in.
template <typename T>
using NormalType = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace weft::ops
