// SPDX-License-Identifier: Apache-2.0
// Eigenvalues and eigenvectors of matrices.
#include <Eigen/Eigenvalues>
#include <memory>

#include "weft/ops/linalg/adjoint_kernel.h"
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

Endpoint Diagonal(GradientContext& c, Endpoint vector, DType dtype) {
  const Endpoint cast =
      TypeOf(vector) == dtype ? vector : c.Op("Cast", {vector}, {{"DstT", dtype}});
  return c.Op("MatrixDiag", {cast});
}

// 1 / (e_j - e_i) in row i and column j, and 0 on the diagonal.
Endpoint Gaps(GradientContext& c, Endpoint e) {
  const auto expand = [&](int32_t axis) {
    return c.Op("ExpandDims", {e, c.builder().Scalar<int32_t>(axis)});
  };
  const Endpoint gaps = SafeReciprocal(c, c.Op("Sub", {expand(-2), expand(-1)}));
  return c.Op("MatrixSetDiag", {gaps, c.Op("ZerosLike", {e})});
}

// Values and vectors: those that the call gave, or, where it gave no vectors, made again.
StatusOr<Node*> WithVectors(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool has_vectors, c.Attr<bool>("compute_v"));
  if (has_vectors) return c.output(0).node;
  AttrMap attrs = c.node().attrs();
  attrs["compute_v"] = true;
  Node* again = c.builder().AddNode(c.node().op(), {c.input(0)}, attrs);
  if (again == nullptr) return c.builder().status();
  return again;
}

Status SelfAdjointGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(Node* const both, WithVectors(c));
  const Endpoint e{both, 0}, v{both, 1};
  const DType dtype = TypeOf(v);
  Endpoint middle;
  if (c.gradient(0)) middle = Diagonal(c, c.gradient(0), dtype);
  if (both == &c.node() && c.gradient(1)) {
    const Endpoint turned = c.Op("Mul", {Gaps(c, e), Product(c, v, c.gradient(1), true)});
    middle = middle ? c.Op("AddV2", {middle, turned}) : turned;
  }
  if (!middle) return absl::OkStatus();
  const Endpoint whole = Product(c, v, Product(c, middle, v, false, true));
  // Only the lower half is read, and stands for the upper one as well.
  const Endpoint lower =
      c.Op("MatrixBandPart", {c.Op("AddV2", {whole, Adjoint(c, whole)}),
                              c.builder().Scalar<int64_t>(-1), c.builder().Scalar<int64_t>(0)});
  const Endpoint half = c.Op("Mul", {ScalarOf(c, dtype, 0.5), c.Op("MatrixDiagPart", {lower})});
  c.set_input(0, c.Op("MatrixSetDiag", {lower, half}));
  return absl::OkStatus();
}

// A gradient of the vectors turns them; only what moves no vector along itself, or by a phase, is
// a movement of the input.
Status GeneralGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(Node* const both, WithVectors(c));
  const Endpoint e{both, 0}, v{both, 1};
  const DType dtype = TypeOf(v);
  Endpoint middle;
  if (c.gradient(0)) middle = Diagonal(c, c.gradient(0), dtype);
  if (both == &c.node() && c.gradient(1)) {
    const Endpoint own = Product(c, v, c.gradient(1), true);
    const DType real = dtype == DType::kComplex64 ? DType::kFloat : DType::kDouble;
    const Endpoint along = c.Op("Real", {c.Op("MatrixDiagPart", {own})}, {{"Tout", real}});
    const Endpoint rest =
        c.Op("Sub", {own, Product(c, Product(c, v, v, true), Diagonal(c, along, dtype))});
    const Endpoint turned = c.Op("Mul", {Conjugate(c, Gaps(c, e)), rest});
    middle = middle ? c.Op("AddV2", {middle, turned}) : turned;
  }
  if (!middle) return absl::OkStatus();
  const Endpoint whole = c.Op("MatrixSolve", {Adjoint(c, v), Product(c, middle, v, false, true)});
  const DType wanted = TypeOf(c.input(0));
  c.set_input(0, wanted == dtype ? whole : c.Op("Cast", {whole}, {{"DstT", wanted}}));
  return absl::OkStatus();
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
      .Gradient(SelfAdjointGradient);
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
      .Gradient(GeneralGradient);
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
