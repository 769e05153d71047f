// SPDX-License-Identifier: Apache-2.0
// Tensors for tests: made from lists, filled with numbers, compared with a tolerance.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "weft/ops/testing/kernel_runner.h"

namespace weft::ops::testing {

template <typename T>
Tensor Make(const Shape& shape, const std::vector<T>& values) {
  return Tensor::FromSpan<T>(shape, absl::MakeConstSpan(values));
}

inline Tensor Ints(const std::vector<int32_t>& values) {
  return Make<int32_t>(Shape{static_cast<int64_t>(values.size())}, values);
}

// Pseudo-random numbers in [low, high): the same ones for the same seed.
template <typename T>
Tensor Fill(const Shape& shape, double low, double high, uint64_t seed = 1) {
  std::vector<T> values(shape.num_elements());
  uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
  for (T& value : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    value = static_cast<T>(low + (high - low) * static_cast<double>(state >> 11) * 0x1p-53);
  }
  return Make<T>(shape, values);
}

inline Tensor Between(const Shape& shape, double low = -1, double high = 1, uint64_t seed = 1) {
  return Fill<double>(shape, low, high, seed);
}

inline Tensor Doubles(const Shape& shape, uint64_t seed = 1) {
  return Fill<double>(shape, -1, 1, seed);
}

inline Tensor I(std::initializer_list<int32_t> values) { return Tensor::Vector<int32_t>(values); }
inline Tensor I(int32_t value) { return Tensor::Scalar<int32_t>(value); }

template <typename T>
std::vector<T> Values(const Tensor& tensor) {
  const absl::Span<const T> span = tensor.span<T>();
  return std::vector<T>(span.begin(), span.end());
}

// The only output of `op`; an uninitialized tensor and a test failure if it fails.
inline Tensor RunOne(absl::string_view op, std::vector<TestInput> inputs, AttrMap attrs = {}) {
  StatusOr<std::vector<Tensor>> outputs = RunOp(op, std::move(inputs), std::move(attrs));
  EXPECT_TRUE(outputs.ok()) << op << ": " << outputs.status();
  return outputs.ok() && !outputs->empty() ? (*outputs)[0] : Tensor();
}

// The error of `op`.
inline Status ErrorOf(absl::string_view op, std::vector<TestInput> inputs, AttrMap attrs = {}) {
  return RunOp(op, std::move(inputs), std::move(attrs)).status();
}

// Equal values (NaN equals NaN) up to `tolerance`, relative to the larger of 1 and the value.
template <typename T>
void ExpectNear(const Tensor& actual, const std::vector<T>& expected, double tolerance = 0) {
  ASSERT_EQ(actual.dtype(), DTypeOf<T>);
  ASSERT_EQ(actual.num_elements(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double x = static_cast<double>(actual.data<T>()[i]);
    const double y = static_cast<double>(expected[i]);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) continue;
    ASSERT_LE(std::abs(x - y), tolerance * std::max(1.0, std::abs(y)))
        << "at " << i << ": " << x << " instead of " << y;
  }
}

}  // namespace weft::ops::testing
