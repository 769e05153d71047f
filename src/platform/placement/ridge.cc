// SPDX-License-Identifier: Apache-2.0
#include "platform/placement/ridge.h"

#include <cstddef>

namespace weft::platform {

void Ridge::Add(const RidgeFeatures& features, double target, double weight) {
  for (size_t i = 0; i < kRidgeFeatures; ++i) {
    products_[i] += weight * features[i] * target;
    for (size_t j = 0; j < kRidgeFeatures; ++j)
      squares_[i][j] += weight * features[i] * features[j];
  }
}

// Gaussian elimination without exchanges: with a penalty the matrix is positive definite.
RidgeFeatures Ridge::Solve(double penalty) const {
  auto rows = squares_;
  RidgeFeatures values = products_;
  for (size_t i = 0; i < kRidgeFeatures; ++i) rows[i][i] += penalty;
  for (size_t i = 0; i < kRidgeFeatures; ++i) {
    for (size_t below = i + 1; below < kRidgeFeatures; ++below) {
      const double part = rows[below][i] / rows[i][i];
      for (size_t j = i; j < kRidgeFeatures; ++j) rows[below][j] -= part * rows[i][j];
      values[below] -= part * values[i];
    }
  }
  for (size_t i = kRidgeFeatures; i-- > 0;) {
    for (size_t j = i + 1; j < kRidgeFeatures; ++j) values[i] -= rows[i][j] * values[j];
    values[i] /= rows[i][i];
  }
  return values;
}

}  // namespace weft::platform
