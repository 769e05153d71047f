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

// The factor L of a symmetric positive definite matrix L L^T, which grows at its end.
class CholeskyFactor {
 public:
  // Columns that are solved for at once.
  static constexpr size_t kTogether = 8;

  size_t size() const { return n_; }
  // Forgets all rows from the n-th on.
  void Truncate(size_t n) { n_ = n; }
  // Makes room for `n` rows in all, of which the new ones are to be written up to the diagonal.
  void Reserve(size_t n);
  double* row(size_t i) { return &values_[i * stride_]; }
  const double* row(size_t i) const { return &values_[i * stride_]; }
  // Factors the rows of the matrix that were written from size() on up to the n-th. False where it
  // is not positive definite: then no row of them counts.
  bool Factor(size_t n);
  // Solves L x = b, and L^T x = b, in place.
  void SolveLower(double* b) const;
  void SolveUpper(double* b) const;
  // L x = b for kTogether columns, which stand side by side in each row of b.
  void SolveLowerTogether(double* b) const;
  // The inverse of L L^T, both halves.
  SquareMatrix Inverse() const;

 private:
  size_t n_ = 0;
  size_t stride_ = 0;
  std::vector<double> values_;
};

}  // namespace weft::platform
