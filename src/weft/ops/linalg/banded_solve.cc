// SPDX-License-Identifier: Apache-2.0
// Systems whose matrices are triangular and have few diagonals, which are given alone.
#include <algorithm>
#include <vector>

#include "weft/ops/broadcast.h"
#include "weft/ops/gradients.h"
#include "weft/ops/linalg/batch_kernel.h"
#include "weft/ops/linalg/eigen.h"

namespace weft::ops::linalg::banded_solve {
namespace {

// Row k of `bands` is diagonal -k of a lower triangle; of an upper one the last row is the main
// diagonal. Element i of a row lies in row i of the triangle.
template <typename T>
class BandedSolveKernel final : public OpKernel {
 public:
  explicit BandedSolveKernel(KernelConstruction& c)
      : lower_(c.AttrOr<bool>("lower", true)), adjoint_(c.AttrOr<bool>("adjoint", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor bands = c.input(0), rhs = c.input(1);
    for (int i = 0; i < 2; ++i) {
      if (c.input(i).rank() < 2) {
        return InvalidArgument("In[", i, "] ndims must be >= 2: ", c.input(i).rank());
      }
    }
    for (int i = 0; i < 2; ++i) {
      if (c.input(i).num_elements() == 0) {
        return InvalidArgument("In[", i,
                               "] must not be an empty tensor: ", c.input(i).shape().ToString());
      }
    }
    const int64_t n = bands.dim(bands.rank() - 1), columns = rhs.dim(rhs.rank() - 1);
    if (rhs.dim(rhs.rank() - 2) != n) {
      return InvalidArgument("In[0] mismatch In[1] shape: ", n, " vs. ", rhs.dim(rhs.rank() - 2),
                             ": ", bands.shape().ToString(), " ", rhs.shape().ToString());
    }
    const Shape a = WithInner(bands.shape(), {}), b = WithInner(rhs.shape(), {});
    WEFT_ASSIGN_OR_RETURN(Shape batch, BroadcastShapes(a, b));
    const auto loops = MakeBroadcastLoops<2>(batch, {&a, &b});
    batch.AddDim(n);
    batch.AddDim(columns);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, batch));
    Status status;
    loops.ForEachRow(0, loops.num_rows(), [&](const std::array<int64_t, 2>& at, int64_t to) {
      for (int64_t i = 0; i < loops.inner.size && status.ok(); ++i) {
        Matrix<T> solution = LoadMatrix<T>(rhs, at[1] + i * loops.inner.stride[1]);
        status = SolveOne(LoadMatrix<T>(bands, at[0] + i * loops.inner.stride[0]), &solution);
        StoreMatrix<T>(solution, out, to + i);
      }
    });
    return status;
  }

 private:
  // `x` is the right-hand side and becomes the solution.
  Status SolveOne(const Matrix<T>& bands, Matrix<T>* x) const {
    const int64_t n = bands.cols(), reach = bands.rows() - 1;
    const int64_t main = lower_ ? 0 : reach;
    for (int64_t i = 0; i < n; ++i) {
      if (!(std::abs(bands(main, i)) > 0)) {
        return InvalidArgument("Input matrix is not invertible.");
      }
    }
    const bool downward = lower_ != adjoint_;
    for (int64_t step = 0; step < n; ++step) {
      const int64_t i = downward ? step : n - 1 - step;
      for (int64_t d = 1; d <= std::min(reach, step); ++d) {
        const int64_t j = downward ? i - d : i + d;
        // The element in row i and column j, or, of the adjoint, in row j and column i.
        const T factor = bands(lower_ ? d : reach - d, adjoint_ ? j : i);
        x->row(i) -= (adjoint_ ? Eigen::numext::conj(factor) : factor) * x->row(j);
      }
      const T pivot = bands(main, i);
      x->row(i) /= adjoint_ ? Eigen::numext::conj(pivot) : pivot;
    }
    return absl::OkStatus();
  }

  const bool lower_;
  const bool adjoint_;
};

Status Shapes(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape bands, c.WithRankAtLeast(0, 2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape rhs, c.WithRankAtLeast(1, 2));
  if (!bands.known_rank() || !rhs.known_rank()) return shapes::Unknown(c);
  WEFT_ASSIGN_OR_RETURN(
      const PartialShape batch,
      shapes::BroadcastPartial(ReplaceInner(bands, 2, {}), ReplaceInner(rhs, 2, {})));
  c.set_output(0, ReplaceInner(batch, 0, {bands.dim(bands.rank() - 1), rhs.dim(rhs.rank() - 1)}));
  return absl::OkStatus();
}

Status Gradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool lower, c.Attr<bool>("lower"));
  WEFT_ASSIGN_OR_RETURN(const bool adjoint, c.Attr<bool>("adjoint"));
  GraphBuilder& b = c.builder();
  const auto vector = [&](int32_t value) { return b.Constant(Tensor::Vector<int32_t>({value})); };
  const Endpoint y = c.output(0);
  const Endpoint rhs = c.Op("BandedTriangularSolve", {c.input(0), c.gradient()},
                            {{"lower", lower}, {"adjoint", !adjoint}});
  const Endpoint whole =
      c.Op("Neg", {adjoint ? Product(c, y, rhs, false, true) : Product(c, rhs, y, false, true)});
  // The diagonals of it that the input has.
  const Endpoint shape = c.Op("Shape", {c.input(0)});
  const Endpoint place = c.Op("Sub", {c.Op("Shape", {shape}), vector(2)});
  const Endpoint reach = c.Op("Sub", {c.Op("Slice", {shape, place, vector(1)}), vector(1)});
  const std::vector<Endpoint> limits = lower
                                           ? std::vector<Endpoint>{c.Op("Neg", {reach}), vector(0)}
                                           : std::vector<Endpoint>{vector(0), reach};
  const Endpoint k = c.Op("ConcatV2", {limits, b.Scalar<int32_t>(0)});
  const Endpoint bands = c.Op("MatrixDiagPartV3", {whole, k, ScalarOf(c, TypeOf(whole), 0)},
                              {{"align", "LEFT_RIGHT"}});
  const auto summed = [&](Endpoint x, int i) {
    const Endpoint own = c.Op("Shape", {c.input(i)});
    const Endpoint axes = c.Op("BroadcastGradientArgs", {own, c.Op("Shape", {x})});
    return c.Op("Reshape", {c.Op("Sum", {x, axes}), own});
  };
  c.set_input(0, summed(bands, 0));
  c.set_input(1, summed(rhs, 1));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec spec("BandedTriangularSolve");
  spec.Doc(
          "X with matrix X = rhs, or with the adjoint, for triangles of which the diagonals are "
          "given.\nRow k of `matrix` is diagonal -k of a lower triangle; the last row is the main "
          "diagonal of an upper one. InvalidArgument for a 0 on the main diagonal.")
      .Input("matrix: T")
      .Input("rhs: T")
      .Output("output: T")
      .Attr("lower: bool = true")
      .Attr("adjoint: bool = false")
      .Attr("T: {double, float, half, complex64, complex128}")
      .Shape(Shapes)
      .Gradient(Gradient);
  catalogue.Add(AddSolverKernels<BandedSolveKernel>(spec));
}

}  // namespace weft::ops::linalg::banded_solve
