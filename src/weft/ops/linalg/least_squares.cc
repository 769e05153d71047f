// SPDX-License-Identifier: Apache-2.0
// Solutions of systems in the sense of least squares.
#include <Eigen/Cholesky>
#include <Eigen/QR>

#include "weft/ops/elements.h"
#include "weft/ops/gradients.h"
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

// Of X = (A^H A + l I)^-1 A^H B where A is tall, and of A^H (A A^H + l I)^-1 B where it is wide.
Status LeastSquaresGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool fast, c.Attr<bool>("fast"));
  if (!fast) return Unimplemented("MatrixSolveLs has a gradient only with fast=True");
  const Endpoint a = c.input(0), b = c.input(1), x = c.output(0), gradient = c.gradient();
  const PartialShape shape = c.builder().ShapeOf(a);
  if (!shape.known_rank() || shape.rank() < 2 || shape.dim(shape.rank() - 1) < 0 ||
      shape.dim(shape.rank() - 2) < 0) {
    return Unimplemented("The gradient of MatrixSolveLs is for matrices of known size, not ",
                         shape.ToString());
  }
  const bool tall = shape.dim(shape.rank() - 2) >= shape.dim(shape.rank() - 1);
  const DType dtype = TypeOf(a);
  const Endpoint square = tall ? Product(c, a, a, true) : Product(c, a, a, false, true);
  const Endpoint diagonal = c.Op("MatrixDiagPart", {square});
  const Endpoint regularizer =
      dtype == DType::kDouble ? c.input(2) : c.Op("Cast", {c.input(2)}, {{"DstT", dtype}});
  const Endpoint gramian = c.Op("MatrixSetDiag", {square, c.Op("AddV2", {diagonal, regularizer})});
  const auto solve = [&](Endpoint rhs) { return c.Op("MatrixSolve", {gramian, rhs}); };
  if (tall) {
    const Endpoint z = solve(gradient);
    const Endpoint both =
        c.Op("AddV2", {Product(c, x, z, false, true), Product(c, z, x, false, true)});
    c.set_input(0, c.Op("Sub", {Product(c, b, z, false, true), Product(c, a, both)}));
    c.set_input(1, Product(c, a, z));
    return absl::OkStatus();
  }
  const Endpoint of_rhs = solve(Product(c, a, gradient)), y = solve(b);
  const Endpoint left = Product(c, of_rhs, Product(c, y, a, true));
  const Endpoint right =
      Product(c, y, c.Op("Sub", {gradient, Product(c, a, of_rhs, true)}), false, true);
  c.set_input(0, c.Op("Sub", {right, left}));
  c.set_input(1, of_rhs);
  return absl::OkStatus();
}

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
      .Gradient(LeastSquaresGradient);
  catalogue.Add(AddSolverKernels<LeastSquaresKernel>(spec));
  OpSpec old = OldName("BatchMatrixSolveLs", "MatrixSolveLs");
  old.Input("matrix: T").Input("rhs: T").Input("l2_regularizer: double").Output("output: T");
  old.Attr("fast: bool = true").Shape([](ShapeContext& c) { return SolveShape(c, false); });
  catalogue.Add(AddRealKernels<LeastSquaresKernel>(old));
}

}  // namespace weft::ops::linalg::least_squares
