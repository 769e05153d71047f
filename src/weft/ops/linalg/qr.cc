// SPDX-License-Identifier: Apache-2.0
// Decompositions of matrices into one with orthonormal columns and a triangular one.
#include <Eigen/QR>
#include <algorithm>

#include "weft/ops/linalg/adjoint_kernel.h"
#include "weft/ops/linalg/batch_kernel.h"
#include "weft/ops/linalg/eigen.h"

namespace weft::ops::linalg::qr {
namespace {

template <typename T>
class QrKernel final : public OpKernel {
 public:
  explicit QrKernel(KernelConstruction& c) : full_(c.AttrOr<bool>("full_matrices", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountMatrices(input, 0));
    const int64_t rows = input.dim(input.rank() - 2), columns = input.dim(input.rank() - 1);
    const int64_t inner = full_ ? rows : std::min(rows, columns);
    WEFT_ASSIGN_OR_RETURN(Tensor * q, c.AllocateOutput(0, WithInner(input.shape(), {rows, inner})));
    WEFT_ASSIGN_OR_RETURN(Tensor * r,
                          c.AllocateOutput(1, WithInner(input.shape(), {inner, columns})));
    if (rows == 0) return absl::OkStatus();
    return ForEachMatrix(c, count, CubicWork(std::max(rows, columns)), [&](int64_t i) {
      if (columns == 0) {
        if (q->num_elements() > 0) StoreMatrix<T>(Matrix<T>::Identity(rows, inner), q, i);
        return absl::OkStatus();
      }
      const Eigen::HouseholderQR<Matrix<T>> found(LoadMatrix<T>(input, i));
      Matrix<T> basis = Matrix<T>::Identity(rows, inner);
      basis.applyOnTheLeft(found.householderQ());
      StoreMatrix<T>(basis, q, i);
      const Matrix<T> upper =
          found.matrixQR().topRows(inner).template triangularView<Eigen::Upper>();
      StoreMatrix<T>(upper, r, i);
      return absl::OkStatus();
    });
  }

 private:
  const bool full_;
};

Status Shapes(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape input, c.WithRankAtLeast(0, 2));
  WEFT_ASSIGN_OR_RETURN(const bool full, c.Attr<bool>("full_matrices"));
  if (!input.known_rank()) return shapes::Unknown(c);
  const int64_t rows = input.dim(input.rank() - 2), columns = input.dim(input.rank() - 1);
  const int64_t inner = full ? rows : std::min(rows, columns);
  c.set_output(0, ReplaceInner(input, 2, {rows, inner}));
  c.set_output(1, ReplaceInner(input, 2, {inner, columns}));
  return absl::OkStatus();
}

// x r^-H for upper triangular r.
Endpoint TimesInverse(GradientContext& c, Endpoint x, Endpoint r) {
  return Adjoint(c, c.Op("MatrixTriangularSolve", {r, Adjoint(c, x)}, {{"lower", false}}));
}

// Of a matrix that is at least as high as wide (Roberts and Roberts, 2020).
Endpoint TallGradient(GradientContext& c, Endpoint q, Endpoint r, Endpoint dq, Endpoint dr) {
  const Endpoint of_q = Product(c, q, dq, true), of_r = Product(c, r, dr, false, true);
  const auto skew = [&](Endpoint x) { return c.Op("Sub", {x, Adjoint(c, x)}); };
  const Endpoint lower =
      c.Op("MatrixBandPart", {c.Op("AddV2", {skew(of_q), skew(of_r)}),
                              c.builder().Scalar<int64_t>(-1), c.builder().Scalar<int64_t>(0)});
  const Endpoint inside = Product(c, q, c.Op("AddV2", {dr, TimesInverse(c, lower, r)}));
  const Endpoint beside = TimesInverse(c, c.Op("Sub", {dq, Product(c, q, of_q)}), r);
  const Endpoint whole = c.Op("AddV2", {inside, beside});
  if (!IsComplex(TypeOf(q))) return whole;
  // The diagonal of r is as it comes: what turns it and the column of q is no movement.
  const Endpoint own = c.Op("MatrixDiagPart", {c.Op("Sub", {of_r, Adjoint(c, of_q)})});
  const Endpoint phase =
      c.Op("Mul", {c.Op("Sub", {own, Conjugate(c, own)}), ScalarOf(c, TypeOf(q), 0.5)});
  return c.Op(
      "AddV2",
      {whole, TimesInverse(c, Product(c, q, Conjugate(c, c.Op("MatrixDiag", {phase}))), r)});
}

// The columns of each matrix from `begin` on, or, with end, up to it.
Endpoint Columns(GradientContext& c, Endpoint x, int64_t begin, int64_t end) {
  const auto pair = [&](int64_t value) {
    return c.builder().Constant(Tensor::Vector<int64_t>({0, value}));
  };
  return c.Op("StridedSlice",
              {x, pair(begin), pair(end), c.builder().Constant(Tensor::Vector<int64_t>({1, 1}))},
              {{"ellipsis_mask", 1}});
}

Status QrGradient(GradientContext& c) {
  const PartialShape shape = c.builder().ShapeOf(c.input(0));
  if (!shape.known_rank() || shape.rank() < 2 || shape.dim(shape.rank() - 1) < 0 ||
      shape.dim(shape.rank() - 2) < 0) {
    return Unimplemented("The gradient of Qr is for matrices of known size, not ",
                         shape.ToString());
  }
  const int64_t rows = shape.dim(shape.rank() - 2), columns = shape.dim(shape.rank() - 1);
  WEFT_ASSIGN_OR_RETURN(const bool full, c.Attr<bool>("full_matrices"));
  if (full && rows > columns) {
    return Unimplemented("The gradient of Qr with full_matrices is not for matrices with more ",
                         "rows than columns: ", shape.ToString());
  }
  const Endpoint q = c.output(0), r = c.output(1);
  const auto or_zeros = [&](int i) {
    return c.gradient(i) ? c.gradient(i) : c.Op("ZerosLike", {c.output(i)});
  };
  const Endpoint dq = or_zeros(0), dr = or_zeros(1);
  if (rows >= columns) {
    c.set_input(0, TallGradient(c, q, r, dq, dr));
    return absl::OkStatus();
  }
  // The first columns make q; the others are q times what r has of them.
  const Endpoint dv = Columns(c, dr, rows, columns);
  const Endpoint total =
      c.Op("AddV2", {dq, Product(c, Columns(c, c.input(0), rows, columns), dv, false, true)});
  const Endpoint square =
      TallGradient(c, q, Columns(c, r, 0, rows), total, Columns(c, dr, 0, rows));
  c.set_input(0, c.Op("ConcatV2", {std::vector<Endpoint>{square, Product(c, q, dv)},
                                   c.builder().Scalar<int32_t>(shape.rank() - 1)}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec spec("Qr");
  spec.Doc(
          "q with orthonormal columns and upper triangular r whose product is the input.\n"
          "`full_matrices` makes q square, else it has as many columns as r has rows.")
      .Input("input: T")
      .Output("q: T")
      .Output("r: T")
      .Attr("full_matrices: bool = false")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(Shapes)
      .Gradient(QrGradient);
  catalogue.Add(AddSolverKernels<QrKernel>(spec));
}

}  // namespace weft::ops::linalg::qr
