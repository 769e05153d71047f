// SPDX-License-Identifier: Apache-2.0
// Linear regression with a penalty on the weights, of three features.
#pragma once

#include <array>

namespace weft::platform {

inline constexpr int kRidgeFeatures = 3;
using RidgeFeatures = std::array<double, kRidgeFeatures>;

// Sums up examples as they come. Thread-compatible.
class Ridge {
 public:
  void Add(const RidgeFeatures& features, double target, double weight);
  // The weights that leave the least squared error and `penalty` times their squares; all 0 before
  // Add.
  RidgeFeatures Solve(double penalty) const;

 private:
  std::array<std::array<double, kRidgeFeatures>, kRidgeFeatures> squares_ = {};
  RidgeFeatures products_ = {};
};

}  // namespace weft::platform
