// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of matrices.
#include <Eigen/Eigenvalues>
#include <memory>

#include "weft/ops/linalg/batch_kernel.h"
#include "weft/ops/linalg/eigen.h"

namespace weft::ops::linalg::eigenvalues {
namespace {

class EigenKernel : public OpKernel {
 public:
  explicit EigenKernel(KernelConstruction& c) : vectors_(c.AttrOr<bool>("compute_v", true)) {}

 protected:
  // Both outputs, for square matrices of the input's shape, whose number it returns.
  StatusOr<int64_t> AllocateOutputs(KernelContext& c, Tensor** values, Tensor** vectors) const {
    const Tensor& input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountSquareMatrices(input, 0));
    const int64_t n = input.dim(input.rank() - 1);
    const Shape square = input.shape(), none = WithInner(input.shape(), {0});
    WEFT_ASSIGN_OR_RETURN(*values, c.AllocateOutput(0, WithInner(square, {n})));
    WEFT_ASSIGN_OR_RETURN(*vectors, c.AllocateOutput(1, vectors_ ? square : none));
    return n == 0 ? 0 : count;
  }

  const bool vectors_;
};

template <typename T>
class SelfAdjointKernel final : public EigenKernel {
 public:
  using EigenKernel::EigenKernel;
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    Tensor *values, *vectors;
    WEFT_ASSIGN_OR_RETURN(const int64_t count, AllocateOutputs(c, &values, &vectors));
    return ForEachMatrix(c, count, 8 * CubicWork(input.dim(input.rank() - 1)), [&](int64_t i) {
      const Eigen::SelfAdjointEigenSolver<Matrix<T>> found(
          LoadMatrix<T>(input, i), vectors_ ? Eigen::ComputeEigenvectors : Eigen::EigenvaluesOnly);
      if (found.info() != Eigen::Success) {
        return InvalidArgument(
            "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
      }
      StoreMatrix<T>(found.eigenvalues().template cast<T>(), values, i);
      if (vectors_) StoreMatrix<T>(found.eigenvectors(), vectors, i);
      return absl::OkStatus();
    });
  }
};

// Eigenvalues as the first row, the vectors below them.
template <typename T>
class StackedKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountSquareMatrices(input, 0));
    const int64_t n = input.dim(input.rank() - 1);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, WithInner(input.shape(), {n + 1, n})));
    if (out->num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(c, count, 8 * CubicWork(n), [&](int64_t i) {
      const Eigen::SelfAdjointEigenSolver<Matrix<T>> found(LoadMatrix<T>(input, i));
      if (found.info() != Eigen::Success) {
        return InvalidArgument(
            "Self-adjoint eigen decomposition was not successful. The input might not be valid.");
      }
      Matrix<T> both(n + 1, n);
      both.row(0) = found.eigenvalues().transpose().template cast<T>();
      both.bottomRows(n) = found.eigenvectors();
      StoreMatrix<T>(both, out, i);
      return absl::OkStatus();
    });
  }
};

// Real matrices have complex eigenvalues, too.
template <typename T>
class GeneralKernel final : public EigenKernel {
 public:
  using EigenKernel::EigenKernel;
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    Tensor *values, *vectors;
    WEFT_ASSIGN_OR_RETURN(const int64_t count, AllocateOutputs(c, &values, &vectors));
    return ForEachMatrix(c, count, 8 * CubicWork(input.dim(input.rank() - 1)), [&](int64_t i) {
      const Matrix<Complex128> matrix = LoadMatrix<T>(input, i).template cast<Complex128>();
      const Eigen::ComplexEigenSolver<Matrix<Complex128>> found(matrix, vectors_);
      if (found.info() != Eigen::Success) {
        return InvalidArgument(
            "Eigen decomposition was not successful. The input might not be valid.");
      }
      StoreMatrix<Complex128>(found.eigenvalues(), values, i);
      if (vectors_) StoreMatrix<Complex128>(found.eigenvectors(), vectors, i);
      return absl::OkStatus();
    });
  }
};

Status Shapes(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(SquareShape(c));
  WEFT_ASSIGN_OR_RETURN(const bool vectors, c.Attr<bool>("compute_v"));
  const PartialShape square = c.output(0);
  c.set_output(0, ReplaceInner(square, 1, {}));
  c.set_output(1, vectors ? square : ReplaceInner(square, 2, {0}));
  return absl::OkStatus();
}

Status StackedShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(SquareShape(c));
  const PartialShape square = c.output(0);
  if (!square.known_rank()) return absl::OkStatus();
  const int64_t n = square.dim(square.rank() - 1);
  c.set_output(0, ReplaceInner(square, 2, {n < 0 ? -1 : n + 1, n}));
  return absl::OkStatus();
}

template <typename In, typename Out, typename T>
void AddGeneral(OpSpec& spec) {
  spec.Kernel({.types = {{"T", DTypesOf<In>()}, {"Tout", DTypesOf<Out>()}},
               .factory = MakeKernel<GeneralKernel<T>>()});
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec self_adjoint("SelfAdjointEigV2");
  self_adjoint
      .Doc(
          "Eigenvalues, the least first, and eigenvectors, one a column, of self-adjoint "
          "matrices.\nOnly the lower half is read. Without `compute_v`, v is empty.")
      .Input("input: T")
      .Output("e: T")
      .Output("v: T")
      .Attr("compute_v: bool = true")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(Shapes)
      .NoGradient();
  catalogue.Add(AddSolverKernels<SelfAdjointKernel>(self_adjoint));
  OpSpec general("Eig");
  general
      .Doc(
          "Eigenvalues, in no order, and eigenvectors, one a column, of square matrices.\n"
          "Without `compute_v`, v is empty.")
      .Input("input: T")
      .Output("e: Tout")
      .Output("v: Tout")
      .Attr("compute_v: bool = true")
      .Attr("T: {float, double, complex64, complex128}")
      .Attr("Tout: {complex64, complex128}")
      .Shape(Shapes)
      .NoGradient();
  AddGeneral<float, Complex64, double>(general);
  AddGeneral<double, Complex128, double>(general);
  AddGeneral<Complex64, Complex64, Complex128>(general);
  AddGeneral<Complex128, Complex128, Complex128>(general);
  catalogue.Add(std::move(general));
  OpSpec old = OldName("BatchSelfAdjointEigV2", "SelfAdjointEigV2");
  old.Input("input: T").Output("e: T").Output("v: T").Attr("compute_v: bool = true").Shape(Shapes);
  catalogue.Add(AddRealKernels<SelfAdjointKernel>(old));
  OpSpec stacked = OldName("SelfAdjointEig", "SelfAdjointEigV2", 11);
  stacked.Input("input: T").Output("output: T").Attr("T: {double, float, half}");
  catalogue.Add(stacked.Shape(StackedShape)
                    .NoGradient()
                    .Kernel({.types = {{"T", DTypesOf<float, double>()}},
                             .factory = MakeKernel<StackedKernel<double>>()}));
  OpSpec old_stacked = OldName("BatchSelfAdjointEig", "SelfAdjointEigV2", 11);
  old_stacked.Input("input: T").Output("output: T").Shape(StackedShape);
  catalogue.Add(AddRealKernels<StackedKernel>(old_stacked));
}

}  // namespace weft::ops::linalg::eigenvalues
