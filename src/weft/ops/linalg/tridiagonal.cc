// SPDX-License-Identifier: Apache-2.0
// Matrices with three diagonals: products with them, and systems.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "weft/ops/gradients.h"
#include "weft/ops/linalg/batch_kernel.h"
#include "weft/ops/linalg/eigen.h"

namespace weft::ops::linalg::tridiagonal {
namespace {

using E = Endpoint;
using G = GradientContext&;

template <typename T>
class ProductKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor rhs = c.input(3);
    const char* names[] = {"Superdiagonal", "Main diagonal", "Subdiagonal"};
    for (int i = 0; i < 4; ++i) WEFT_RETURN_IF_ERROR(CountMatrices(c.input(i), i).status());
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountMatrices(rhs, 3));
    const int64_t n = rhs.dim(rhs.rank() - 2);
    for (int i = 0; i < 3; ++i) {
      if (c.input(i).shape() == WithInner(rhs.shape(), {1, n})) continue;
      return InvalidArgument(names[i], " must have the shape ",
                             WithInner(rhs.shape(), {1, n}).ToString(), ", got ",
                             c.input(i).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, rhs.shape()));
    if (rhs.num_elements() == 0) return absl::OkStatus();
    const Tensor above = c.input(0), main = c.input(1), below = c.input(2);
    return ForEachMatrix(c, count, 4 * n * rhs.dim(rhs.rank() - 1), [&](int64_t i) {
      const Matrix<T> x = LoadMatrix<T>(rhs, i), u = LoadMatrix<T>(above, i),
                      d = LoadMatrix<T>(main, i), l = LoadMatrix<T>(below, i);
      Matrix<T> y(x.rows(), x.cols());
      for (int64_t row = 0; row < n; ++row) {
        y.row(row) = d(0, row) * x.row(row);
        if (row > 0) y.row(row) += l(0, row) * x.row(row - 1);
        if (row + 1 < n) y.row(row) += u(0, row) * x.row(row + 1);
      }
      StoreMatrix<T>(y, out, i);
      return absl::OkStatus();
    });
  }
};

// The diagonals come as rows: above, main, below. The last element of the first and the first of
// the last do not count. Systems without one solution give NaN.
template <typename T>
class SolveKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const bool pivoting = c.AttrOr<bool>("partial_pivoting", true);
    const bool perturb = c.AttrOr<bool>("perturb_singular", false);
    if (perturb && !pivoting) {
      return InvalidArgument("Setting perturb_singular requires also setting partial_pivoting.");
    }
    return std::make_unique<SolveKernel>(pivoting, perturb);
  }
  SolveKernel(bool pivoting, bool perturb) : pivoting_(pivoting), perturb_(perturb) {}

  Status Compute(KernelContext& c) override {
    const Tensor diagonals = c.input(0), rhs = c.input(1);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountMatrices(diagonals, 0));
    WEFT_RETURN_IF_ERROR(CountMatrices(rhs, 1).status());
    if (WithInner(diagonals.shape(), {}) != WithInner(rhs.shape(), {})) {
      return InvalidArgument("All input tensors must have the same outer dimensions, got ",
                             diagonals.shape().ToString(), " and ", rhs.shape().ToString());
    }
    if (diagonals.dim(diagonals.rank() - 2) != 3) {
      return InvalidArgument("Expected diagonals to be provided as a matrix with 3 rows, got ",
                             diagonals.dim(diagonals.rank() - 2), " rows.");
    }
    const int64_t n = diagonals.dim(diagonals.rank() - 1);
    if (n != rhs.dim(rhs.rank() - 2)) {
      return InvalidArgument(
          "Expected the same number of left-hand sides and right-hand sides, got ", n, " and ",
          rhs.dim(rhs.rank() - 2), ".");
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, rhs.shape()));
    if (rhs.num_elements() == 0) return absl::OkStatus();
    return ForEachMatrix(c, count, 8 * n * rhs.dim(rhs.rank() - 1), [&](int64_t i) {
      Matrix<T> x = LoadMatrix<T>(rhs, i);
      const Matrix<T> d = LoadMatrix<T>(diagonals, i);
      const double smallest = rhs.dtype() == DType::kFloat || rhs.dtype() == DType::kComplex64
                                  ? std::numeric_limits<float>::epsilon()
                                  : std::numeric_limits<double>::epsilon();
      if (!(pivoting_ ? Eliminate(d, smallest, &x) : Thomas(d, &x))) {
        x.setConstant(std::numeric_limits<T>::quiet_NaN());
      }
      StoreMatrix<T>(x, out, i);
      return absl::OkStatus();
    });
  }

 private:
  // Without exchanging rows.
  static bool Thomas(const Matrix<T>& d, Matrix<T>* x) {
    const int64_t n = d.cols();
    std::vector<T> above(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      const T pivot = i == 0 ? d(1, 0) : d(1, i) - d(2, i) * above[i - 1];
      if (pivot == T(0)) return false;
      above[i] = d(0, i) / pivot;
      if (i > 0) x->row(i) -= d(2, i) * x->row(i - 1);
      x->row(i) /= pivot;
    }
    for (int64_t i = n - 2; i >= 0; --i) x->row(i) -= above[i] * x->row(i + 1);
    return true;
  }

  // Exchanges neighbouring rows, so that U has two diagonals above the main one.
  bool Eliminate(const Matrix<T>& d, double epsilon, Matrix<T>* x) const {
    const int64_t n = d.cols();
    Matrix<T> u = Matrix<T>::Zero(n, 3);
    u(0, 0) = d(1, 0);
    if (n > 1) u(0, 1) = d(0, 0);
    double scale = std::abs(u(0, 0)) + std::abs(u(0, 1));
    for (int64_t k = 0; k + 1 < n; ++k) {
      const T below = d(2, k + 1), next = k + 2 < n ? d(0, k + 1) : T(0);
      const double next_scale = std::abs(below) + std::abs(d(1, k + 1)) + std::abs(next);
      bool keep = std::abs(u(k, 0)) >= std::abs(below);
      if (perturb_) {
        keep = below == T(0) ||
               (u(k, 0) != T(0) && std::abs(below) / next_scale <= std::abs(u(k, 0)) / scale);
      }
      if (keep) {
        if (u(k, 0) == T(0) && !perturb_) return false;
        const T factor = below == T(0) ? T(0) : below / u(k, 0);
        u(k + 1, 0) = d(1, k + 1) - factor * u(k, 1);
        u(k + 1, 1) = next;
        x->row(k + 1) -= factor * x->row(k);
        scale = next_scale;
      } else {
        const T factor = u(k, 0) / below;
        u(k + 1, 0) = u(k, 1) - factor * d(1, k + 1);
        u(k + 1, 1) = -factor * next;
        u(k, 0) = below;
        u(k, 1) = d(1, k + 1);
        u(k, 2) = next;
        const Matrix<T> row = x->row(k + 1);
        x->row(k + 1) = x->row(k) - factor * row;
        x->row(k) = row;
      }
    }
    if (!perturb_ && u(n - 1, 0) == T(0)) return false;
    const double tolerance = epsilon * u.cwiseAbs().maxCoeff();
    for (int64_t k = n - 1; k >= 0; --k) {
      if (k + 1 < n) x->row(k) -= u(k, 1) * x->row(k + 1);
      if (k + 2 < n) x->row(k) -= u(k, 2) * x->row(k + 2);
      T pivot = u(k, 0);
      if (perturb_) pivot = Perturbed(pivot, tolerance, x->row(k).cwiseAbs().maxCoeff());
      x->row(k) /= pivot;
    }
    return true;
  }

  // A pivot that is so small that dividing by it overflows moves away from 0, as in LAPACK's lagts.
  static T Perturbed(T pivot, double perturbation, double largest) {
    constexpr double kLeast = std::numeric_limits<double>::min();
    perturbation = std::copysign(std::max(perturbation, kLeast), std::real(pivot));
    while (std::abs(pivot) < 1 && (pivot == T(0) || largest * kLeast > std::abs(pivot))) {
      pivot += perturbation;
      perturbation *= 2;
    }
    return pivot;
  }

  const bool pivoting_;
  const bool perturb_;
};

Status ProductShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape rhs, c.WithRankAtLeast(3, 2));
  c.set_output(0, std::move(rhs));
  return absl::OkStatus();
}

Status SolveSystemShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape diagonals, c.WithRankAtLeast(0, 2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape rhs, c.WithRankAtLeast(1, 2));
  if (!diagonals.known_rank() || !rhs.known_rank()) return shapes::Unknown(c);
  const int64_t rows = diagonals.dim(diagonals.rank() - 2);
  if (rows >= 0 && rows != 3) return InvalidArgument("Dimension must be 3 but is ", rows);
  WEFT_RETURN_IF_ERROR(ReplaceInner(diagonals, 2, {}).MergeWith(ReplaceInner(rhs, 2, {})).status());
  c.set_output(0, rhs);
  return absl::OkStatus();
}

E Rolled(G c, E x, int32_t shift) {
  const E last = c.Op("Sub", {c.Op("Rank", {x}), c.builder().Scalar<int32_t>(1)});
  return c.Op("Roll", {x, c.builder().Scalar<int32_t>(shift), last});
}
// Rows moved up by one, the last one zero; or down. `like` is a diagonal: [..., 1, n].
E Shifted(G c, E rows, E like, bool up) {
  const E ones = c.Op("OnesLike", {like}), zeros = c.Op("ZerosLike", {like});
  return c.Op("TridiagonalMatMul", {up ? ones : zeros, zeros, up ? zeros : ones, rows});
}
// Of the matrix a b^H, the three diagonals, each [..., 1, n].
std::vector<E> ThreeDiagonals(G c, E a, E b, E like) {
  const auto sums = [&](E other) {
    const E products = c.Op("Mul", {a, Conjugate(c, other)});
    const E axis = c.builder().Constant(Tensor::Vector<int32_t>({-1}));
    return c.Op("ExpandDims", {c.Op("Sum", {products, axis}), c.builder().Scalar<int32_t>(-2)});
  };
  return {sums(Shifted(c, b, like, true)), sums(b), sums(Shifted(c, b, like, false))};
}

Status ProductGradient(G c) {
  const E dy = c.gradient();
  const std::vector<E> diagonals = ThreeDiagonals(c, dy, c.input(3), c.input(1));
  for (int i = 0; i < 3; ++i) c.set_input(i, diagonals[static_cast<size_t>(i)]);
  c.set_input(3, c.Op("TridiagonalMatMul",
                      {Rolled(c, Conjugate(c, c.input(2)), -1), Conjugate(c, c.input(1)),
                       Rolled(c, Conjugate(c, c.input(0)), 1), dy}));
  return absl::OkStatus();
}

Status SolveGradient(G c) {
  GraphBuilder& b = c.builder();
  Node* parts = b.AddNode("Unpack", {Conjugate(c, c.input(0))}, {{"num", 3}, {"axis", -2}});
  if (parts == nullptr) return b.status();
  const E main{parts, 1};
  AttrMap attrs = {{"axis", -2}};
  const std::vector<E> rows = {Rolled(c, E{parts, 2}, -1), main, Rolled(c, E{parts, 0}, 1)};
  const E adjoint{b.AddNode("Pack", {rows}, attrs), 0};
  WEFT_ASSIGN_OR_RETURN(const bool pivoting, c.Attr<bool>("partial_pivoting"));
  WEFT_ASSIGN_OR_RETURN(const bool perturb, c.Attr<bool>("perturb_singular"));
  const E rhs = c.Op("TridiagonalSolve", {adjoint, c.gradient()},
                     {{"partial_pivoting", pivoting}, {"perturb_singular", perturb}});
  const E like = c.Op("ExpandDims", {main, b.Scalar<int32_t>(-2)});
  const std::vector<E> diagonals = ThreeDiagonals(c, rhs, c.output(0), like);
  c.set_input(0, c.Op("Neg", {c.Op("ConcatV2", {diagonals, b.Scalar<int32_t>(-2)})}));
  c.set_input(1, rhs);
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec product("TridiagonalMatMul");
  product
      .Doc(
          "Products of matrices that have three diagonals, each [..., 1, n], with rhs.\nThe last "
          "element of superdiag and the first of subdiag do not count.")
      .Input("superdiag: T")
      .Input("maindiag: T")
      .Input("subdiag: T")
      .Input("rhs: T")
      .Output("output: T")
      .Attr("T: {double, float, complex64, complex128}")
      .Shape(ProductShape)
      .Gradient(ProductGradient);
  catalogue.Add(AddSolverKernels<ProductKernel>(product));
  OpSpec solve("TridiagonalSolve");
  solve
      .Doc(
          "Solves systems whose matrices have three diagonals, the rows of `diagonals`: above the "
          "main one, the main one, below.\nThe last element of the first and the first of the last "
          "do not count. NaN where there is no solution; perturb_singular gives one of a system "
          "near by.")
      .Input("diagonals: T")
      .Input("rhs: T")
      .Output("output: T")
      .Attr("partial_pivoting: bool = true")
      .Attr("perturb_singular: bool = false")
      .Attr("T: {double, float, complex64, complex128}")
      .Shape(SolveSystemShape)
      .Gradient(SolveGradient);
  catalogue.Add(AddSolverKernels<SolveKernel>(solve));
}

}  // namespace weft::ops::linalg::tridiagonal
