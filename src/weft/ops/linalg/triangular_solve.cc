// SPDX-License-Identifier: Apache-2.0
// Systems whose matrices are triangular.
#include "weft/ops/broadcast.h"
#include "weft/ops/gradients.h"
#include "weft/ops/linalg/batch_kernel.h"
#include "weft/ops/linalg/eigen.h"

namespace weft::ops::linalg::triangular_solve {
namespace {

// Leading dimensions broadcast.
template <typename T>
class TriangularSolveKernel final : public OpKernel {
 public:
  explicit TriangularSolveKernel(KernelConstruction& c)
      : lower_(c.AttrOr<bool>("lower", true)), adjoint_(c.AttrOr<bool>("adjoint", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor matrix = c.input(0), rhs = c.input(1);
    for (int i = 0; i < 2; ++i) {
      if (c.input(i).rank() >= 2) continue;
      return InvalidArgument("In[", i, "] ndims must be >= 2: ", c.input(i).rank());
    }
    WEFT_RETURN_IF_ERROR(CountSquareMatrices(matrix, 0).status());
    const int64_t n = matrix.dim(matrix.rank() - 1), columns = rhs.dim(rhs.rank() - 1);
    if (rhs.dim(rhs.rank() - 2) != n) {
      return InvalidArgument("In[0] mismatch In[1] shape: ", matrix.shape().ToString(), " and ",
                             rhs.shape().ToString());
    }
    const Shape a = WithInner(matrix.shape(), {}), b = WithInner(rhs.shape(), {});
    WEFT_ASSIGN_OR_RETURN(Shape batch, BroadcastShapes(a, b));
    const auto loops = MakeBroadcastLoops<2>(batch, {&a, &b});
    batch.AddDim(n);
    batch.AddDim(columns);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, batch));
    if (out->num_elements() == 0) return absl::OkStatus();
    loops.ForEachRow(0, loops.num_rows(), [&](const std::array<int64_t, 2>& at, int64_t to) {
      for (int64_t i = 0; i < loops.inner.size; ++i) {
        Matrix<T> solution = LoadMatrix<T>(rhs, at[1] + i * loops.inner.stride[1]);
        SolveOne(LoadMatrix<T>(matrix, at[0] + i * loops.inner.stride[0]), &solution);
        StoreMatrix<T>(solution, out, to + i);
      }
    });
    return absl::OkStatus();
  }

 private:
  // `x` is the right-hand side and becomes the solution.
  void SolveOne(const Matrix<T>& a, Matrix<T>* x) const {
    if (lower_) {
      const auto triangle = a.template triangularView<Eigen::Lower>();
      adjoint_ ? triangle.adjoint().solveInPlace(*x) : triangle.solveInPlace(*x);
    } else {
      const auto triangle = a.template triangularView<Eigen::Upper>();
      adjoint_ ? triangle.adjoint().solveInPlace(*x) : triangle.solveInPlace(*x);
    }
  }

  const bool lower_;
  const bool adjoint_;
};

Status Shapes(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape matrix, c.WithRankAtLeast(0, 2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape rhs, c.WithRankAtLeast(1, 2));
  if (!matrix.known_rank() || !rhs.known_rank()) return shapes::Unknown(c);
  WEFT_ASSIGN_OR_RETURN(
      const PartialShape batch,
      shapes::BroadcastPartial(ReplaceInner(matrix, 2, {}), ReplaceInner(rhs, 2, {})));
  c.set_output(0, ReplaceInner(batch, 0, {rhs.dim(rhs.rank() - 2), rhs.dim(rhs.rank() - 1)}));
  return absl::OkStatus();
}

Status Gradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool lower, c.Attr<bool>("lower"));
  WEFT_ASSIGN_OR_RETURN(const bool adjoint, c.Attr<bool>("adjoint"));
  GraphBuilder& b = c.builder();
  const Endpoint y = c.output(0);
  const Endpoint rhs = c.Op("MatrixTriangularSolve", {c.input(0), c.gradient()},
                            {{"lower", lower}, {"adjoint", !adjoint}});
  Endpoint matrix =
      c.Op("Neg", {adjoint ? Product(c, y, rhs, false, true) : Product(c, rhs, y, false, true)});
  matrix = c.Op("MatrixBandPart",
                {matrix, b.Scalar<int64_t>(lower ? -1 : 0), b.Scalar<int64_t>(lower ? 0 : -1)});
  // Sums over the leading dimensions that were broadcast.
  const auto summed = [&](Endpoint x, int i) {
    const Endpoint own = c.Op("Shape", {c.input(i)});
    const Endpoint axes = c.Op("BroadcastGradientArgs", {own, c.Op("Shape", {x})});
    return c.Op("Reshape", {c.Op("Sum", {x, axes}), own});
  };
  c.set_input(0, summed(matrix, 0));
  c.set_input(1, summed(rhs, 1));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec spec("MatrixTriangularSolve");
  spec.Doc(
          "X with matrix X = rhs, of which only the lower or upper half is read; or with its "
          "adjoint.\nLeading dimensions broadcast. A 0 on the diagonal gives infinities.")
      .Input("matrix: T")
      .Input("rhs: T")
      .Output("output: T")
      .Attr("lower: bool = true")
      .Attr("adjoint: bool = false")
      .Attr("T: {bfloat16, double, float, half, complex64, complex128}")
      .Shape(Shapes)
      .Gradient(Gradient);
  catalogue.Add(AddSolverKernels<TriangularSolveKernel>(spec));
  OpSpec old = OldName("BatchMatrixTriangularSolve", "MatrixTriangularSolve");
  old.Input("matrix: T").Input("rhs: T").Output("output: T").Shape(Shapes);
  old.Attr("lower: bool = true").Attr("adjoint: bool = false");
  catalogue.Add(AddRealKernels<TriangularSolveKernel>(old));
}

}  // namespace weft::ops::linalg::triangular_solve
