// SPDX-License-Identifier: Apache-2.0
// Decompositions of matrices into one with orthonormal columns and a triangular one.
#include <Eigen/QR>
#include <algorithm>

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
      .NoGradient();
  catalogue.Add(AddSolverKernels<QrKernel>(spec));
}

}  // namespace weft::ops::linalg::qr
