// SPDX-License-Identifier: Apache-2.0
// Cholesky's decomposition of positive definite matrices, and its derivative.
#include <Eigen/Cholesky>

#include "weft/ops/gradients.h"
#include "weft/ops/linalg/batch_kernel.h"
#include "weft/ops/linalg/eigen.h"

namespace weft::ops::linalg::cholesky {
namespace {

template <typename T>
class CholeskyKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountSquareMatrices(input, 0));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, input.shape()));
    if (input.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(c, count, CubicWork(input.dim(input.rank() - 1)), [&](int64_t i) {
      const Eigen::LLT<Matrix<T>> found(LoadMatrix<T>(input, i));
      if (found.info() != Eigen::Success) {
        return InvalidArgument(
            "Cholesky decomposition was not successful. The input might not be valid.");
      }
      StoreMatrix<T>(found.matrixL(), out, i);
      return absl::OkStatus();
    });
  }
};

// The derivative by the formula for whole matrices: with P = lower half of L^H G, whose diagonal
// counts half, L^-H (P + P^H) L^-1 / 2.
template <typename T>
class CholeskyGradKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor l = c.input(0), gradient = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountSquareMatrices(l, 0));
    if (gradient.shape() != l.shape()) {
      return InvalidArgument("Inputs of CholeskyGrad must have the same shape: ",
                             l.shape().ToString(), " and ", gradient.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, l.shape()));
    if (l.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(c, count, CubicWork(l.dim(l.rank() - 1)), [&](int64_t i) {
      const Matrix<T> lower = LoadMatrix<T>(l, i).template triangularView<Eigen::Lower>();
      const Matrix<T> g = LoadMatrix<T>(gradient, i).template triangularView<Eigen::Lower>();
      Matrix<T> middle = lower.transpose() * g;
      middle = middle.template triangularView<Eigen::Lower>();
      middle.diagonal() *= T(0.5);
      const auto upper = lower.transpose().template triangularView<Eigen::Upper>();
      const Matrix<T> left = upper.solve(middle);
      const Matrix<T> whole = upper.solve(Matrix<T>(left.transpose())).transpose();
      StoreMatrix<T>((whole + Matrix<T>(whole.transpose())) * T(0.5), out, i);
      return absl::OkStatus();
    });
  }
};

Status Gradient(GradientContext& c) {
  const Endpoint l = c.output(0);
  GraphBuilder& b = c.builder();
  const DType dtype = c.node().output_type(0).dtype;
  Endpoint middle = Product(c, l, c.gradient(), true);
  const Endpoint half = ScalarOf(c, dtype, 0.5);
  middle = c.Op("MatrixSetDiag", {middle, c.Op("Mul", {c.Op("MatrixDiagPart", {middle}), half})});
  middle = c.Op("MatrixBandPart", {middle, b.Scalar<int64_t>(-1), b.Scalar<int64_t>(0)});
  const auto solved = [&](Endpoint rhs) {
    return c.Op("MatrixTriangularSolve", {l, rhs}, {{"lower", true}, {"adjoint", true}});
  };
  const auto adjoint = [&](Endpoint x) {
    // Swaps the last two dimensions: the product with an identity that MatrixDiag makes.
    const Endpoint ones = c.Op("OnesLike", {c.Op("MatrixDiagPart", {x})});
    return Product(c, x, c.Op("MatrixDiag", {ones}), true);
  };
  const Endpoint whole = adjoint(solved(adjoint(solved(middle))));
  c.set_input(0, c.Op("Mul", {c.Op("AddV2", {whole, adjoint(whole)}), half}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec spec("Cholesky");
  spec.Doc(
          "Lower triangular matrices L with L L^H = input; only the lower half is read.\n"
          "InvalidArgument if a matrix is not positive definite.")
      .Input("input: T")
      .Output("output: T")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(SquareShape)
      .Gradient(Gradient);
  catalogue.Add(AddSolverKernels<CholeskyKernel>(spec));
  catalogue.Add(OpSpec("CholeskyGrad")
                    .Doc("The gradient of Cholesky's input, from its output `l` and the gradient "
                         "of that.")
                    .Input("l: T")
                    .Input("grad: T")
                    .Output("output: T")
                    .Attr("T: {half, float, double}")
                    .Shape(SquareShape)
                    .NoGradient()
                    .Kernel({.types = {{"T", DTypesOf<float, double>()}},
                             .factory = MakeKernel<CholeskyGradKernel<double>>()}));
  OpSpec old = OldName("BatchCholesky", "Cholesky"),
         old_grad = OldName("BatchCholeskyGrad", "CholeskyGrad");
  old.Input("input: T").Output("output: T").Shape(SquareShape);
  old_grad.Input("l: T").Input("grad: T").Output("output: T").Shape(SquareShape);
  catalogue.Add(AddRealKernels<CholeskyKernel>(old));
  catalogue.Add(AddRealKernels<CholeskyGradKernel>(old_grad));
}

}  // namespace weft::ops::linalg::cholesky
