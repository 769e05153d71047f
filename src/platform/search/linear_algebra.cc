// SPDX-License-Identifier: Apache-2.0
#include "platform/search/linear_algebra.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

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

// Sums in the same order whatever the processor has: four lanes, then the rest.
using Lanes = double __attribute__((vector_size(32)));

inline void Load(const double* from, Lanes* lanes) { std::memcpy(lanes, from, sizeof(*lanes)); }

double Dot(const double* a, const double* b, size_t n) {
  Lanes sum = {};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    Lanes x, y;
    Load(a + i, &x);
    Load(b + i, &y);
    sum += x * y;
  }
  double total = sum[0] + sum[1] + sum[2] + sum[3];
  for (; i < n; ++i) total += a[i] * b[i];
  return total;
}

// Of `a` with four rows that stand `stride` apart, each as Dot sums it.
void DotFour(const double* a, const double* rows, size_t stride, size_t n, double* dots) {
  Lanes sums[4] = {};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    Lanes x;
    Load(a + i, &x);
    for (size_t k = 0; k < 4; ++k) {
      Lanes y;
      Load(rows + k * stride + i, &y);
      sums[k] += x * y;
    }
  }
  for (size_t k = 0; k < 4; ++k) {
    dots[k] = sums[k][0] + sums[k][1] + sums[k][2] + sums[k][3];
    for (size_t j = i; j < n; ++j) dots[k] += a[j] * rows[k * stride + j];
  }
}

// b -= factor * a.
void Subtract(const double* a, double factor, size_t n, double* b) {
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    Lanes x, y;
    Load(a + i, &x);
    Load(b + i, &y);
    y -= factor * x;
    std::memcpy(b + i, &y, sizeof(y));
  }
  for (; i < n; ++i) b[i] -= factor * a[i];
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

void CholeskyFactor::Reserve(size_t n) {
  if (n <= stride_) return;
  const size_t stride = (std::max(n, stride_ * 3 / 2) + 3) / 4 * 4;
  std::vector<double> values(stride * stride, 0);
  for (size_t i = 0; i < n_; ++i) std::copy_n(row(i), i + 1, &values[i * stride]);
  values_ = std::move(values);
  stride_ = stride;
}

bool CholeskyFactor::Factor(size_t n) {
  size_t i = n_;
  while (i < n) {
    // Four rows at a time, as far as they only need those before them.
    const size_t rows = std::min<size_t>(4, n - i);
    const size_t before = rows == 4 ? i : 0;
    for (size_t j = 0; j < before; ++j) {
      double dots[4];
      DotFour(row(j), row(i), stride_, j, dots);
      for (size_t k = 0; k < 4; ++k) row(i + k)[j] = (row(i + k)[j] - dots[k]) / row(j)[j];
    }
    for (size_t end = i + rows; i < end; ++i) {
      double* const own = row(i);
      for (size_t j = before; j < i; ++j) own[j] = (own[j] - Dot(own, row(j), j)) / row(j)[j];
      const double rest = own[i] - Dot(own, own, i);
      if (!(rest > 0)) return false;
      own[i] = std::sqrt(rest);
    }
  }
  n_ = n;
  return true;
}

void CholeskyFactor::SolveLower(double* b) const {
  for (size_t i = 0; i < n_; ++i) b[i] = (b[i] - Dot(row(i), b, i)) / row(i)[i];
}

void CholeskyFactor::SolveUpper(double* b) const {
  for (size_t i = n_; i-- > 0;) {
    b[i] /= row(i)[i];
    Subtract(row(i), b[i], i, b);
  }
}

void CholeskyFactor::SolveLowerTogether(double* b) const {
  static_assert(kTogether == 8);
  // Two rows at a time, which share what they read.
  for (size_t i = 0; i < n_; i += 2) {
    const double* const first = row(i);
    const double* const second = i + 1 < n_ ? row(i + 1) : first;
    Lanes sums[4] = {};
    Load(b + 8 * i, &sums[0]);
    Load(b + 8 * i + 4, &sums[1]);
    if (second != first) {
      Load(b + 8 * i + 8, &sums[2]);
      Load(b + 8 * i + 12, &sums[3]);
    }
    for (size_t k = 0; k < i; ++k) {
      Lanes x, y;
      Load(b + 8 * k, &x);
      Load(b + 8 * k + 4, &y);
      sums[0] -= first[k] * x;
      sums[1] -= first[k] * y;
      sums[2] -= second[k] * x;
      sums[3] -= second[k] * y;
    }
    sums[0] *= 1 / first[i];
    sums[1] *= 1 / first[i];
    std::memcpy(b + 8 * i, sums, 2 * sizeof(Lanes));
    if (second == first) break;
    sums[2] = (sums[2] - second[i] * sums[0]) * (1 / second[i + 1]);
    sums[3] = (sums[3] - second[i] * sums[1]) * (1 / second[i + 1]);
    std::memcpy(b + 8 * i + 8, sums + 2, 2 * sizeof(Lanes));
  }
}

SquareMatrix CholeskyFactor::Inverse() const {
  const size_t stride = (n_ + 3) / 4 * 4;
  std::vector<double> lower(stride * n_, 0);  // the inverse of L, by rows
  for (size_t i = 0; i < n_; ++i) {
    double* const own = &lower[i * stride];
    const double scale = -1 / row(i)[i];
    for (size_t k = 0; k < i; ++k) Subtract(&lower[k * stride], -row(i)[k] * scale, k + 1, own);
    own[i] = -scale;
  }
  SquareMatrix inverse(n_);
  for (size_t k = 0; k < n_; ++k) {
    const double* const from = &lower[k * stride];
    for (size_t i = 0; i <= k; ++i) Subtract(from, -from[i], i + 1, &inverse.at(i, 0));
  }
  for (size_t i = 0; i < n_; ++i) {
    for (size_t j = 0; j < i; ++j) inverse.at(j, i) = inverse.at(i, j);
  }
  return inverse;
}

}  // namespace weft::platform
