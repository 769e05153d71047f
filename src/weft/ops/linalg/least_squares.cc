// SPDX-License-Identifier: Apache-2.0
// Solutions of systems in the sense of least squares.
#include <Eigen/Cholesky>
#include <Eigen/QR>

#include "weft/ops/elements.h"
#include "weft/ops/linalg/batch_kernel.h"
#include "weft/ops/linalg/eigen.h"

namespace weft::ops::linalg::least_squares {
namespace {

template <typename T>
class LeastSquaresKernel final : public OpKernel {
 public:
  explicit LeastSquaresKernel(KernelConstruction& c) : fast_(c.AttrOr<bool>("fast", true)) {}

  Status Compute(KernelContext& c) override {
    const Tensor matrix = c.input(0), rhs = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountMatrices(matrix, 0));
    WEFT_RETURN_IF_ERROR(CheckSolvable(matrix, rhs));
    if (c.input(2).rank() != 0) {
      return InvalidArgument("l2_regularizer must be a scalar, got shape ",
                             c.input(2).shape().ToString());
    }
    const double regularizer = c.input(2).scalar<double>();
    if (regularizer < 0) {
      return InvalidArgument("l2_regularizer must be >= 0, got ", regularizer);
    }
    const int64_t unknowns = matrix.dim(matrix.rank() - 1);
    const Shape shape = WithInner(matrix.shape(), {unknowns, rhs.dim(rhs.rank() - 1)});
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    if (matrix.num_elements() == 0) {
      ClearElements(out, 0, out->num_elements());
      return absl::OkStatus();
    }
    return ForEachMatrix(c, count, CubicWork(unknowns), [&](int64_t i) {
      Matrix<T> found;
      WEFT_RETURN_IF_ERROR(
          SolveOne(LoadMatrix<T>(matrix, i), LoadMatrix<T>(rhs, i), regularizer, &found));
      StoreMatrix<T>(found, out, i);
      return absl::OkStatus();
    });
  }

 private:
  // By the normal equations if fast, of the smaller of A^H A and A A^H.
  Status SolveOne(const Matrix<T>& a, const Matrix<T>& b, double regularizer,
                  Matrix<T>* out) const {
    if (!fast_) {
      *out = Eigen::CompleteOrthogonalDecomposition<Matrix<T>>(a).solve(b);
      return absl::OkStatus();
    }
    const bool tall = a.rows() >= a.cols();
    Matrix<T> gramian;
    if (tall) {
      gramian.noalias() = a.adjoint() * a;
    } else {
      gramian.noalias() = a * a.adjoint();
    }
    if (regularizer > 0) gramian.diagonal().array() += T(regularizer);
    const Eigen::LLT<Matrix<T>> found(gramian);
    if (found.info() != Eigen::Success) {
      return InvalidArgument(
          "Input matrix was rank deficient or ill-conditioned. Try setting fast=False or provide "
          "a larger l2_regularizer > 0.");
    }
    if (tall) {
      *out = found.solve(Matrix<T>(a.adjoint() * b));
    } else {
      *out = a.adjoint() * Matrix<T>(found.solve(b));
    }
    return absl::OkStatus();
  }

  const bool fast_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec spec("MatrixSolveLs");
  spec.Doc(
          "X that makes |matrix X - rhs|^2 + l2_regularizer |X|^2 least, for each column of rhs.\n"
          "`fast` solves the normal equations, which InvalidArgument refuses where they have no "
          "single solution; else the regularizer does not count.")
      .Input("matrix: T")
      .Input("rhs: T")
      .Input("l2_regularizer: double")
      .Output("output: T")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Attr("fast: bool = true")
      .Shape([](ShapeContext& c) { return SolveShape(c, false); })
      .NoGradient();
  catalogue.Add(AddSolverKernels<LeastSquaresKernel>(spec));
  OpSpec old = OldName("BatchMatrixSolveLs", "MatrixSolveLs");
  old.Input("matrix: T").Input("rhs: T").Input("l2_regularizer: double").Output("output: T");
  old.Attr("fast: bool = true").Shape([](ShapeContext& c) { return SolveShape(c, false); });
  catalogue.Add(AddRealKernels<LeastSquaresKernel>(old));
}

}  // namespace weft::ops::linalg::least_squares
