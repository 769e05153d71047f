// SPDX-License-Identifier: Apache-2.0
#include "platform/search/linear_algebra.h"

#include <cmath>

namespace weft::platform {
namespace {

constexpr int kMostSweeps = 60;

// One rotation that makes element (p, q) zero.
void Rotate(SquareMatrix& a, SquareMatrix& vectors, size_t p, size_t q) {
  const double theta = (a.at(q, q) - a.at(p, p)) / (2 * a.at(p, q));
  const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
  const double c = 1 / std::sqrt(t * t + 1), s = t * c;
  const size_t n = a.size();
  for (size_t k = 0; k < n; ++k) {
    const double x = a.at(k, p), y = a.at(k, q);
    a.at(k, p) = c * x - s * y;
    a.at(k, q) = s * x + c * y;
  }
  for (size_t k = 0; k < n; ++k) {
    const double x = a.at(p, k), y = a.at(q, k);
    a.at(p, k) = c * x - s * y;
    a.at(q, k) = s * x + c * y;
    const double v = vectors.at(k, p), w = vectors.at(k, q);
    vectors.at(k, p) = c * v - s * w;
    vectors.at(k, q) = s * v + c * w;
  }
}

}  // namespace

void Diagonalize(SquareMatrix matrix, std::vector<double>* values, SquareMatrix* vectors) {
  const size_t n = matrix.size();
  *vectors = SquareMatrix::Identity(n);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double outside = 0, inside = 0;
    for (size_t i = 0; i < n; ++i) {
      inside += matrix.at(i, i) * matrix.at(i, i);
      for (size_t j = 0; j < i; ++j) outside += matrix.at(i, j) * matrix.at(i, j);
    }
    if (outside <= 1e-24 * inside) break;
    for (size_t p = 0; p < n; ++p) {
      for (size_t q = p + 1; q < n; ++q) {
        if (matrix.at(p, q) != 0) Rotate(matrix, *vectors, p, q);
      }
    }
  }
  values->resize(n);
  for (size_t i = 0; i < n; ++i) (*values)[i] = matrix.at(i, i);
}

bool FactorCholesky(SquareMatrix* matrix) {
  SquareMatrix& a = *matrix;
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      double sum = a.at(i, j);
      for (size_t k = 0; k < j; ++k) sum -= a.at(i, k) * a.at(j, k);
      if (i == j) {
        if (!(sum > 0)) return false;
        a.at(i, i) = std::sqrt(sum);
      } else {
        a.at(i, j) = sum / a.at(j, j);
      }
    }
  }
  return true;
}

void SolveLower(const SquareMatrix& factor, std::vector<double>* b) {
  std::vector<double>& x = *b;
  for (size_t i = 0; i < x.size(); ++i) {
    for (size_t k = 0; k < i; ++k) x[i] -= factor.at(i, k) * x[k];
    x[i] /= factor.at(i, i);
  }
}

void SolveUpper(const SquareMatrix& factor, std::vector<double>* b) {
  std::vector<double>& x = *b;
  for (size_t i = x.size(); i-- > 0;) {
    for (size_t k = i + 1; k < x.size(); ++k) x[i] -= factor.at(k, i) * x[k];
    x[i] /= factor.at(i, i);
  }
}

}  // namespace weft::platform
