// SPDX-License-Identifier: Apache-2.0
// Random numbers that are the same with every compiler and library.
#pragma once

#include <cmath>
#include <cstdint>

namespace weft::platform {

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
class RandomNumbers {
 public:
  // A sequence of its own for each trial of each seed.
  RandomNumbers(uint64_t seed, uint64_t number) : state_(seed * 0x9e3779b97f4a7c15u ^ number) {
    state_ = Bits() ^ number * 0xd1342543de82ef95u;
  }

  uint64_t Bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  // In [0, 1).
  double Uniform() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }
  // In [0, n).
  int64_t Below(int64_t n) { return static_cast<int64_t>(Uniform() * static_cast<double>(n)); }
  // Box and Muller's.
  double Normal() {
    const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
    return radius * std::cos(6.283185307179586 * Uniform());
  }

 private:
  uint64_t state_;
};

// x, thrown back at the ends of [0, 1].
inline double Reflect(double x) {
  x = std::abs(std::fmod(x, 2));
  return x > 1 ? 2 - x : x;
}

}  // namespace weft::platform
