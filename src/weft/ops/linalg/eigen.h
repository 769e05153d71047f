// SPDX-License-Identifier: Apache-2.0
// Eigen, which does the linear algebra, and how tensors become its matrices. Thread-safe.
#pragma once

// What kernels hand to Eigen they have checked; its own checks would abort.
#ifndef EIGEN_NO_DEBUG
#define EIGEN_NO_DEBUG
#endif
#include <Eigen/Core>
#include <algorithm>
#include <complex>
#include <cstdint>

#include "weft/kernel/op_kernel.h"
#include "weft/tensor/tensor.h"

namespace weft::ops::linalg {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <typename T>
using RealOf = typename Eigen::NumTraits<T>::Real;

// Everything is computed in double precision, which spares half of the compiler's time: T is double
// for tensors of float and double, Complex128 for both complex types.

// Calls body.operator()<S>() with the type that elements of `tensor` have.
template <typename T, typename Body>
void VisitStored(const Tensor& tensor, Body&& body) {
  if constexpr (Eigen::NumTraits<T>::IsComplex) {
    VisitDType(tensor.dtype(), TypeList<Complex64, Complex128>(), body);
  } else {
    VisitDType(tensor.dtype(), TypeList<float, double>(), body);
  }
}

// Matrix `i` of a tensor that holds several.
template <typename T>
Matrix<T> LoadMatrix(const Tensor& tensor, int64_t i) {
  const int64_t rows = tensor.dim(tensor.rank() - 2), columns = tensor.dim(tensor.rank() - 1);
  Matrix<T> matrix(rows, columns);
  VisitStored<T>(tensor, [&]<typename S>() {
    std::copy_n(tensor.data<S>() + i * rows * columns, rows * columns, matrix.data());
  });
  return matrix;
}
// Writes it as matrix, or vector, `i` of a tensor that holds several of that size.
template <typename T>
void StoreMatrix(const Matrix<T>& matrix, Tensor* tensor, int64_t i) {
  VisitStored<T>(*tensor, [&]<typename S>() {
    std::transform(matrix.data(), matrix.data() + matrix.size(),
                   tensor->data<S>() + i * matrix.size(), [](T x) { return static_cast<S>(x); });
  });
}

}  // namespace weft::ops::linalg
