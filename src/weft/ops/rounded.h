// SPDX-License-Identifier: Apache-2.0
// Arithmetic that rounds to 16 bits after every operation, as TensorFlow's kernels do.
#pragma once

#include <cmath>
#include <complex>
#include <type_traits>

#include "weft/tensor/narrow_float.h"

namespace weft::rules {

// A Half or Bfloat16 held as the float it equals.
template <typename T>
class Rounded {
 public:
  Rounded() = default;
  template <typename U>
  requires(std::is_arithmetic_v<U> || std::is_same_v<U, T>) explicit Rounded(U value)
      : value_(static_cast<float>(T(static_cast<float>(value)))) {}
  template <typename U>
  requires(std::is_arithmetic_v<U> || std::is_same_v<U, T>) explicit operator U() const {
    return static_cast<U>(value_);
  }

  friend Rounded operator+(Rounded a, Rounded b) { return Rounded(a.value_ + b.value_); }
  friend Rounded operator-(Rounded a, Rounded b) { return Rounded(a.value_ - b.value_); }
  friend Rounded operator*(Rounded a, Rounded b) { return Rounded(a.value_ * b.value_); }
  friend Rounded operator/(Rounded a, Rounded b) { return Rounded(a.value_ / b.value_); }
  friend Rounded operator-(Rounded a) { return Rounded(-a.value_); }
  Rounded& operator+=(Rounded other) { return *this = *this + other; }
  Rounded& operator-=(Rounded other) { return *this = *this - other; }
  friend bool operator<(Rounded a, Rounded b) { return a.value_ < b.value_; }
  friend bool operator>(Rounded a, Rounded b) { return a.value_ > b.value_; }
  friend bool operator==(Rounded a, Rounded b) { return a.value_ == b.value_; }

  friend Rounded sqrt(Rounded a) { return Rounded(std::sqrt(a.value_)); }
  friend Rounded abs(Rounded a) { return Rounded(std::fabs(a.value_)); }
  friend Rounded log(Rounded a) { return Rounded(std::log(a.value_)); }
  friend bool isfinite(Rounded a) { return std::isfinite(a.value_); }
  friend Rounded exp(Rounded a) { return Rounded(std::exp(a.value_)); }
  friend Rounded pow(Rounded a, Rounded b) { return Rounded(std::pow(a.value_, b.value_)); }
  friend Rounded copysign(Rounded a, Rounded b) {
    return Rounded(std::copysign(a.value_, b.value_));
  }

 private:
  float value_ = 0;
};

// Rules call these without a namespace, so that they fit every type they compute in.
using std::abs;
using std::copysign;
using std::exp;
using std::isfinite;
using std::log;
using std::pow;
using std::sqrt;

}  // namespace weft::rules
