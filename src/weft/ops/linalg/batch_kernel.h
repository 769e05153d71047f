// SPDX-License-Identifier: Apache-2.0
// What ops on batches of matrices share: checks of their shapes, and one call a matrix.
#pragma once

#include "absl/functional/function_ref.h"

#include "weft/kernel/op_spec.h"

namespace weft::ops::linalg {

// How many matrices the tensor holds. InvalidArgument unless it has two dimensions or more; `i`
// says which input it is.
StatusOr<int64_t> CountMatrices(const Tensor& tensor, int i);
// The same of square ones.
StatusOr<int64_t> CountSquareMatrices(const Tensor& tensor, int i);
// InvalidArgument unless both have the same leading sizes and as many rows.
Status CheckSolvable(const Tensor& matrix, const Tensor& rhs);
// The shape with other sizes for its last two dimensions.
Shape WithInner(const Shape& shape, std::initializer_list<int64_t> inner);

// Calls body(i) for each of `count` matrices, on the device's threads; `work` is what one costs in
// multiplications. The error of one of those that failed.
Status ForEachMatrix(const KernelContext& c, int64_t count, int64_t work,
                     absl::FunctionRef<Status(int64_t)> body);
// What a decomposition of n x n, about, costs.
inline int64_t CubicWork(int64_t n) { return std::max<int64_t>(1, n * n * n); }

// Adds the kernels of an op that computes in double precision, by attribute `T`.
template <template <typename> class Kernel>
OpSpec& AddSolverKernels(OpSpec& spec) {
  return spec
      .Kernel(
          {.types = {{"T", DTypesOf<float, double>()}}, .factory = MakeKernel<Kernel<double>>()})
      .Kernel({.types = {{"T", DTypesOf<Complex64, Complex128>()}},
               .factory = MakeKernel<Kernel<Complex128>>()});
}

// An op under a name that graphs of today may hold no more; and its kernels, which took real
// numbers alone.
OpSpec OldName(const char* name, const char* now, int since = 13);
template <template <typename> class Kernel>
OpSpec& AddRealKernels(OpSpec& spec) {
  return spec.Attr("T: {double, float}")
      .NoGradient()
      .Kernel(
          {.types = {{"T", DTypesOf<float, double>()}}, .factory = MakeKernel<Kernel<double>>()});
}

// Shape functions: square matrices in, the same out; and their batch alone.
Status SquareShape(ShapeContext& c);
Status SquareToScalarShape(ShapeContext& c);
// Matrices and right-hand sides of a system; `square` if it must be.
Status SolveShape(ShapeContext& c, bool square);
// `shape` without its last `n` sizes, and others behind it.
PartialShape ReplaceInner(const PartialShape& shape, int n, std::initializer_list<int64_t> inner);

// Gradients: products of batches of matrices, each taken adjoint or not.
Endpoint Product(GradientContext& c, Endpoint a, Endpoint b, bool adjoint_a = false,
                 bool adjoint_b = false);

}  // namespace weft::ops::linalg
