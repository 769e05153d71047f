// SPDX-License-Identifier: Apache-2.0
// The singular value decomposition.
#include <Eigen/SVD>

#include "weft/ops/elements.h"
#include "weft/ops/gradients.h"
#include "weft/ops/linalg/batch_kernel.h"
#include "weft/ops/linalg/eigen.h"

namespace weft::ops::linalg::svd {
namespace {

using E = Endpoint;
using G = GradientContext&;

template <typename T>
class SvdKernel final : public OpKernel {
 public:
  explicit SvdKernel(KernelConstruction& c)
      : vectors_(c.AttrOr<bool>("compute_uv", true)),
        full_(c.AttrOr<bool>("full_matrices", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const int64_t count, CountMatrices(input, 0));
    const int64_t rows = input.dim(input.rank() - 2), columns = input.dim(input.rank() - 1);
    const int64_t least = std::min(rows, columns);
    const auto square_or_thin = [&](int64_t n) {
      return vectors_ ? WithInner(input.shape(), {n, full_ ? n : least})
                      : WithInner(input.shape(), {0});
    };
    WEFT_ASSIGN_OR_RETURN(Tensor * s, c.AllocateOutput(0, WithInner(input.shape(), {least})));
    WEFT_ASSIGN_OR_RETURN(Tensor * u, c.AllocateOutput(1, square_or_thin(rows)));
    WEFT_ASSIGN_OR_RETURN(Tensor * v, c.AllocateOutput(2, square_or_thin(columns)));
    if (least == 0) {
      for (Tensor* t : {u, v}) FillIdentities(count, t);
      return absl::OkStatus();
    }
    const unsigned options = !vectors_ ? 0
                             : full_   ? Eigen::ComputeFullU | Eigen::ComputeFullV
                                       : Eigen::ComputeThinU | Eigen::ComputeThinV;
    return ForEachMatrix(c, count, 16 * CubicWork(std::max(rows, columns)), [&](int64_t i) {
      const Eigen::JacobiSVD<Matrix<T>> found(LoadMatrix<T>(input, i), options);
      StoreMatrix<T>(found.singularValues().template cast<T>(), s, i);
      if (!vectors_) return absl::OkStatus();
      StoreMatrix<T>(found.matrixU(), u, i);
      StoreMatrix<T>(found.matrixV(), v, i);
      return absl::OkStatus();
    });
  }

 private:
  static void FillIdentities(int64_t count, Tensor* t) {
    if (t->num_elements() == 0) return;
    const int64_t n = t->dim(t->rank() - 1);
    for (int64_t i = 0; i < count; ++i) StoreMatrix<T>(Matrix<T>::Identity(n, n), t, i);
  }

  const bool vectors_;
  const bool full_;
};

Status SvdShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape input, c.WithRankAtLeast(0, 2));
  if (!input.known_rank()) return shapes::Unknown(c);
  WEFT_ASSIGN_OR_RETURN(const bool vectors, c.Attr<bool>("compute_uv"));
  WEFT_ASSIGN_OR_RETURN(const bool full, c.Attr<bool>("full_matrices"));
  const int64_t rows = input.dim(input.rank() - 2), columns = input.dim(input.rank() - 1);
  const bool known = (rows >= 0 && columns >= 0) || rows == 0 || columns == 0;
  const int64_t least = known ? std::min(rows, columns) : -1;
  c.set_output(0, ReplaceInner(input, 2, {least}));
  c.set_output(1, vectors ? ReplaceInner(input, 2, {rows, full ? rows : least})
                          : ReplaceInner(input, 2, {0}));
  c.set_output(2, vectors ? ReplaceInner(input, 2, {columns, full ? columns : least})
                          : ReplaceInner(input, 2, {0}));
  return absl::OkStatus();
}

E Times(G c, E a, E b) { return c.Op("Mul", {a, b}); }
E Minus(G c, E a, E b) { return c.Op("Sub", {a, b}); }
// A matrix whose columns, or rows, are multiplied by what a vector says.
E ScaleColumns(G c, E matrix, E vector) {
  return Times(c, matrix, c.Op("ExpandDims", {vector, c.builder().Scalar<int32_t>(-2)}));
}
E ScaleRows(G c, E matrix, E vector) {
  return Times(c, matrix, c.Op("ExpandDims", {vector, c.builder().Scalar<int32_t>(-1)}));
}

// What the gradients of U and V say of the middle of U (...) V^H, and of the space beside it.
E VectorsGradient(G c, E s, E u, E v, E middle) {
  const E one = ScalarOf(c, TypeOf(s), 1);
  const E squares = c.Op("Square", {s});
  const E inverse = c.Op("DivNoNan", {one, s});
  // 1 / (s_j^2 - s_i^2), 0 on the diagonal and where two are equal.
  const E gaps = Minus(c, c.Op("ExpandDims", {squares, c.builder().Scalar<int32_t>(-2)}),
                       c.Op("ExpandDims", {squares, c.builder().Scalar<int32_t>(-1)}));
  const E factors = c.Op("DivNoNan", {one, gaps});
  const auto add = [&](E a, E b) { return a ? c.Op("AddV2", {a, b}) : b; };
  const auto turn = [&](E x, E gradient) {
    return Times(c, factors,
                 Minus(c, Product(c, x, gradient, true), Product(c, gradient, x, true)));
  };
  const auto beside = [&](E x, E gradient) {
    return ScaleColumns(c, Minus(c, gradient, Product(c, x, Product(c, x, gradient, true))),
                        inverse);
  };
  if (c.gradient(1)) middle = add(middle, ScaleColumns(c, turn(u, c.gradient(1)), s));
  if (c.gradient(2)) middle = add(middle, ScaleRows(c, turn(v, c.gradient(2)), s));
  if (c.gradient(2) && IsComplex(TypeOf(s))) {
    // A phase that U and V share leaves the input as it is.
    const E own = c.Op("MatrixDiagPart", {Product(c, v, c.gradient(2), true)});
    const E phase = Times(c, Minus(c, Conjugate(c, own), own), ScalarOf(c, TypeOf(s), 0.5));
    middle = add(middle, c.Op("MatrixDiag", {Times(c, phase, inverse)}));
  }
  E total;
  if (middle) total = Product(c, Product(c, u, middle), v, false, true);
  if (c.gradient(1)) total = add(total, Product(c, beside(u, c.gradient(1)), v, false, true));
  if (c.gradient(2)) total = add(total, Product(c, u, beside(v, c.gradient(2)), false, true));
  return total;
}

Status SvdGradient(G c) {
  WEFT_ASSIGN_OR_RETURN(const bool vectors, c.Attr<bool>("compute_uv"));
  WEFT_ASSIGN_OR_RETURN(const bool full, c.Attr<bool>("full_matrices"));
  if (!vectors) {
    Node* again = c.builder().AddNode("Svd", {c.input(0)});
    if (again == nullptr) return c.builder().status();
    c.set_input(0, Product(c, ScaleColumns(c, Endpoint{again, 1}, c.gradient()), Endpoint{again, 2},
                           false, true));
    return absl::OkStatus();
  }
  const PartialShape shape = c.builder().ShapeOf(c.input(0));
  const bool is_oblong = shape.known_rank() && shape.rank() >= 2 &&
                         shape.dim(shape.rank() - 1) >= 0 && shape.dim(shape.rank() - 2) >= 0 &&
                         shape.dim(shape.rank() - 1) != shape.dim(shape.rank() - 2);
  if (full && is_oblong) {
    return Unimplemented("The gradient of Svd with full_matrices is for square matrices, not for ",
                         shape.ToString());
  }
  E middle;
  if (c.gradient(0)) middle = c.Op("MatrixDiag", {c.gradient(0)});
  c.set_input(0, VectorsGradient(c, c.output(0), c.output(1), c.output(2), middle));
  return absl::OkStatus();
}

OpSpec Signature(const char* name, const char* doc, const char* types) {
  OpSpec spec(name);
  spec.Doc(doc)
      .Input("input: T")
      .Output("s: T")
      .Output("u: T")
      .Output("v: T")
      .Attr("compute_uv: bool = true")
      .Attr("full_matrices: bool = false")
      .Attr(types)
      .Shape(SvdShape);
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec spec =
      Signature("Svd",
                "Singular values, the largest first, and the vectors: input = u diag(s) v^H.\n"
                "With full_matrices u and v are square. Without compute_uv they are empty.",
                "T: {double, float, half, complex64, complex128}");
  catalogue.Add(AddSolverKernels<SvdKernel>(spec.Gradient(SvdGradient)));
  OpSpec old =
      Signature("BatchSvd", "The old name of Svd.", "T: {double, float, complex64, complex128}");
  catalogue.Add(AddSolverKernels<SvdKernel>(old.Deprecated(13, "Use Svd instead.").NoGradient()));
}

}  // namespace weft::ops::linalg::svd
