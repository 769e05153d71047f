// SPDX-License-Identifier: Apache-2.0
// A sparse matrix times a dense one.
#include <algorithm>
#include <complex>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"
#include "weft/ops/index_values.h"

namespace weft::ops::sparse::matmul {
namespace {

using Numbers = TypeList<float, double, int32_t, Complex64, Complex128, Bfloat16, Half>;

template <typename T>
using Total = std::conditional_t<std::is_same_v<T, Bfloat16> || std::is_same_v<T, Half>, float, T>;

template <typename T>
T Adjoint(T x) {
  if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
    return std::conj(x);
  } else {
    return x;
  }
}

template <typename T>
class ProductKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    return std::make_unique<ProductKernel>(c.AttrOr("adjoint_a", false),
                                           c.AttrOr("adjoint_b", false));
  }
  ProductKernel(bool adjoint_a, bool adjoint_b) : adjoint_a_(adjoint_a), adjoint_b_(adjoint_b) {}

  Status Compute(KernelContext& c) override {
    WEFT_RETURN_IF_ERROR(Check(c));
    const Tensor &a_shape = c.input(2), &b = c.input(3);
    const int64_t rows = IndexAt(a_shape, adjoint_a_ ? 1 : 0);
    const int64_t inner = IndexAt(a_shape, adjoint_a_ ? 0 : 1);
    const int64_t b_inner = b.dim(adjoint_b_ ? 1 : 0), columns = b.dim(adjoint_b_ ? 0 : 1);
    if (inner != b_inner) {
      return InvalidArgument(
          "Cannot multiply A and B because inner dimension does not match: ", inner, " vs. ",
          b_inner, ".  Did you forget a transpose?  A is [", IndexAt(a_shape, 0), ",",
          IndexAt(a_shape, 1), "], B is ", b.shape().ToString());
    }
    const int64_t sizes[] = {rows, columns};
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    const Tensor& indices = c.input(0);
    for (int64_t i = 0; i < indices.dim(0); ++i) {
      const int64_t row = IndexAt(indices, 2 * i), column = IndexAt(indices, 2 * i + 1);
      if (row >= 0 && row < IndexAt(a_shape, 0) && column >= 0 && column < IndexAt(a_shape, 1))
        continue;
      return InvalidArgument("a_indices[", i, "] = [", row, ",", column, "] is out of bounds of [",
                             IndexAt(a_shape, 0), ",", IndexAt(a_shape, 1), "]");
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() > 0) Multiply(c, out);
    return absl::OkStatus();
  }

 private:
  static Status Check(const KernelContext& c) {
    const Tensor &indices = c.input(0), &values = c.input(1), &shape = c.input(2);
    if (c.input(3).rank() != 2) return InvalidArgument("Tensor 'b' is not a matrix");
    if (shape.rank() != 1 || shape.dim(0) != 2) {
      return InvalidArgument("Tensor 'a_shape' must have 2 elements, got shape ",
                             shape.shape().ToString());
    }
    if (values.rank() != 1) return InvalidArgument("Tensor 'a_values' is not a vector");
    if (indices.rank() != 2) return InvalidArgument("Tensor 'a_indices' is not a matrix");
    if (indices.dim(0) != values.dim(0) || indices.dim(1) != 2) {
      return InvalidArgument("Tensor 'a_indices' must be [", values.dim(0), ",2], got ",
                             indices.shape().ToString());
    }
    if (IndexAt(shape, 0) >= 0 && IndexAt(shape, 1) >= 0) return absl::OkStatus();
    return InvalidArgument("Sizes of 'a_shape' are negative");
  }

  void Multiply(const KernelContext& c, Tensor* out) const {
    const Tensor &indices = c.input(0), &b = c.input(3);
    const T* values = c.input(1).data<T>();
    const int64_t columns = out->dim(1), stride = b.dim(1);
    std::vector<Total<T>> wide;  // where T is too narrow to add in
    if constexpr (!std::is_same_v<T, Total<T>>) wide.resize(out->num_elements());
    if constexpr (std::is_same_v<T, Total<T>>)
      std::fill_n(out->data<T>(), out->num_elements(), T());
    for (int64_t i = 0; i < indices.dim(0); ++i) {
      const int64_t m = IndexAt(indices, 2 * i + (adjoint_a_ ? 1 : 0));
      const int64_t k = IndexAt(indices, 2 * i + (adjoint_a_ ? 0 : 1));
      const auto a = static_cast<Total<T>>(adjoint_a_ ? Adjoint(values[i]) : values[i]);
      Total<T>* row = nullptr;
      if constexpr (std::is_same_v<T, Total<T>>) {
        row = out->data<T>() + m * columns;
      } else {
        row = wide.data() + m * columns;
      }
      const T* from = adjoint_b_ ? b.data<T>() + k : b.data<T>() + k * stride;
      const int64_t step = adjoint_b_ ? stride : 1;
      for (int64_t n = 0; n < columns; ++n) {
        const T x = from[n * step];
        row[n] += a * static_cast<Total<T>>(adjoint_b_ ? Adjoint(x) : x);
      }
    }
    if constexpr (!std::is_same_v<T, Total<T>>) {
      std::transform(wide.begin(), wide.end(), out->data<T>(),
                     [](Total<T> x) { return static_cast<T>(x); });
    }
  }

  const bool adjoint_a_;
  const bool adjoint_b_;
};

Status ProductShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool adjoint_a, c.Attr<bool>("adjoint_a"));
  WEFT_ASSIGN_OR_RETURN(const bool adjoint_b, c.Attr<bool>("adjoint_b"));
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEFT_ASSIGN_OR_RETURN(const PartialShape a, c.ShapeFromInput(2));
  WEFT_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(3, 2));
  if (a.known_rank() && a.rank() != 2) {
    return InvalidArgument("a_shape must have 2 elements, but has ", a.rank());
  }
  c.set_output(0, PartialShape({a.dim(adjoint_a ? 1 : 0), b.dim(adjoint_b ? 0 : 1)}));
  return absl::OkStatus();
}

// dL/db is a's adjoint times the gradient; a's entry at [i, j] gets row i of the gradient times row
// j of b.
Status ProductGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const bool adjoint_a, c.Attr<bool>("adjoint_a"));
  WEFT_ASSIGN_OR_RETURN(const bool adjoint_b, c.Attr<bool>("adjoint_b"));
  GraphBuilder& b = c.builder();
  const auto transposed = [&](Endpoint x) {
    return Conjugate(c, c.Op("Transpose", {x, b.Constant(Tensor::Vector<int32_t>({1, 0}))}));
  };
  const Endpoint to_b =
      c.Op("SparseTensorDenseMatMul", {c.input(0), c.input(1), c.input(2), c.gradient()},
           {{"adjoint_a", !adjoint_a}});
  c.set_input(3, adjoint_b ? transposed(to_b) : to_b);
  Node* sides = b.AddNode("Unpack", {c.input(0)}, {{"num", 2}, {"axis", 1}});
  if (sides == nullptr) return b.status();
  const Endpoint zero = b.Scalar<int32_t>(0);
  const Endpoint left = c.Op("GatherV2", {c.gradient(), Endpoint{sides, adjoint_a ? 1 : 0}, zero});
  const Endpoint dense = adjoint_b ? transposed(c.input(3)) : c.input(3);
  const Endpoint right = c.Op("GatherV2", {dense, Endpoint{sides, adjoint_a ? 0 : 1}, zero});
  const Endpoint products = c.Op("Mul", {left, Conjugate(c, right)});
  const Endpoint values = c.Op("Sum", {products, b.Constant(Tensor::Vector<int32_t>({1}), "axis")});
  c.set_input(1, adjoint_a ? Conjugate(c, values) : values);
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec spec("SparseTensorDenseMatMul");
  spec.Doc(
          "The product of a sparse matrix A and a dense matrix B, of the adjoint of each where the "
          "attribute says so.\na_indices: [n, 2] in any order. InvalidArgument for an index out of "
          "range and for sizes that do not fit.")
      .Input("a_indices: Tindices")
      .Input("a_values: T")
      .Input("a_shape: int64")
      .HostInput("a_shape")
      .Input("b: T")
      .Output("product: T")
      .Attr("T: type")
      .Attr("Tindices: {int32, int64} = DT_INT64")
      .Attr("adjoint_a: bool = false")
      .Attr("adjoint_b: bool = false")
      .Shape(ProductShape)
      .Gradient(ProductGradient);
  const auto add = [&]<typename... Ts>(TypeList<Ts...>) {
    (spec.Kernel({.types = {{"T", DTypesOf<Ts>()}}, .factory = MakeKernel<ProductKernel<Ts>>()}),
     ...);
  };
  add(Numbers());
  catalogue.Add(std::move(spec));
}

}  // namespace weft::ops::sparse::matmul
