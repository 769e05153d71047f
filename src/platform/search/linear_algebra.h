// SPDX-License-Identifier: Apache-2.0
// The little linear algebra that samplers need.
#pragma once

#include <cstddef>
#include <vector>

namespace weft::platform {

class SquareMatrix {
 public:
  explicit SquareMatrix(size_t n) : n_(n), values_(n * n, 0) {}
  static SquareMatrix Identity(size_t n) {
    SquareMatrix m(n);
    for (size_t i = 0; i < n; ++i) m.at(i, i) = 1;
    return m;
  }
  size_t size() const { return n_; }
  double& at(size_t row, size_t column) { return values_[row * n_ + column]; }
  double at(size_t row, size_t column) const { return values_[row * n_ + column]; }

 private:
  size_t n_;
  std::vector<double> values_;
};

// Eigenvalues of a symmetric matrix and, as columns, its eigenvectors, by Jacobi's rotations.
void Diagonalize(SquareMatrix matrix, std::vector<double>* values, SquareMatrix* vectors);

// Replaces the lower half of a symmetric matrix by the factor L with L L^T = matrix. False where it
// is not positive definite.
bool FactorCholesky(SquareMatrix* matrix);
// Solves L x = b, and L^T x = b, in place.
void SolveLower(const SquareMatrix& factor, std::vector<double>* b);
void SolveUpper(const SquareMatrix& factor, std::vector<double>* b);

}  // namespace weft::platform
