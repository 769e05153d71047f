// SPDX-License-Identifier: Apache-2.0
// Sums, and the larger or smaller, of two sparse tensors; a sparse tensor added to a dense one.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"
#include "weft/ops/math/functors.h"
#include "weft/ops/sparse/sparse_input.h"

namespace weft::ops::sparse::add {
namespace {

using Sums = TypeList<float, double, int64_t, int32_t, int16_t, int8_t, Complex64, Complex128>;

// Which entries of two ordered lists make one of the result; -1 where one side has none there.
struct Pair {
  int64_t a = -1;
  int64_t b = -1;
};

// < 0, 0 or > 0 as position i of `a` comes before, is, or comes after position j of `b`.
int ComparePositions(const int64_t* a, const int64_t* b, int64_t rank) {
  for (int64_t d = 0; d < rank; ++d) {
    if (a[d] != b[d]) return a[d] < b[d] ? -1 : 1;
  }
  return 0;
}

// All positions of both, in order, where both are ordered.
std::vector<Pair> Merge(const SparseInput& a, const SparseInput& b) {
  std::vector<Pair> pairs;
  int64_t i = 0, j = 0;
  while (i < a.count() || j < b.count()) {
    const int order = i == a.count()   ? 1
                      : j == b.count() ? -1
                                       : ComparePositions(a.position(i), b.position(j), a.rank());
    pairs.push_back({order <= 0 ? i : -1, order >= 0 ? j : -1});
    if (order <= 0) ++i;
    if (order >= 0) ++j;
  }
  return pairs;
}

Status CheckSameShape(const SparseInput& a, const SparseInput& b) {
  if (a.shape->shape() == b.shape->shape() &&
      a.shape->span<int64_t>() == b.shape->span<int64_t>()) {
    return absl::OkStatus();
  }
  return InvalidArgument("Operands' shapes do not match: got [",
                         absl::StrJoin(a.shape->span<int64_t>(), ","), "] and [",
                         absl::StrJoin(b.shape->span<int64_t>(), ","), "]");
}

// Outputs 0 and 1: `pairs` as positions, and their `values`.
template <typename T>
Status Give(KernelContext& c, const SparseInput& a, const SparseInput& b,
            const std::vector<Pair>& pairs, const std::vector<T>& values) {
  const auto count = static_cast<int64_t>(pairs.size());
  WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape{count, a.rank()}));
  int64_t* to = indices->data<int64_t>();
  for (const Pair& pair : pairs) {
    to = std::copy_n(pair.a >= 0 ? a.position(pair.a) : b.position(pair.b), a.rank(), to);
  }
  WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(1, Shape{count}));
  std::copy(values.begin(), values.end(), out->data<T>());
  return absl::OkStatus();
}

template <typename T>
class AddKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const SparseInput a, SparseInputAt(c, 0));
    WEFT_ASSIGN_OR_RETURN(const SparseInput b, SparseInputAt(c, 3));
    WEFT_RETURN_IF_ERROR(CheckSameShape(a, b));
    if (c.input(6).rank() != 0) {
      return InvalidArgument("The magnitude threshold must be a scalar: got shape ",
                             c.input(6).shape().ToString());
    }
    double threshold = 0;
    VisitDType(c.input(6).dtype(), RealNumbers(), [&]<typename Real>() {
      threshold = static_cast<double>(static_cast<Wide<Real>>(c.input(6).scalar<Real>()));
    });
    std::vector<Pair> kept;
    std::vector<T> sums;
    for (const Pair& pair : Merge(a, b)) {
      T sum = pair.a >= 0 ? a.values->data<T>()[pair.a] : b.values->data<T>()[pair.b];
      if (pair.a >= 0 && pair.b >= 0) {
        sum = AddOf::Apply<T>(sum, b.values->data<T>()[pair.b]);
        if (!(threshold <= static_cast<double>(std::abs(sum)))) continue;
      }
      kept.push_back(pair);
      sums.push_back(sum);
    }
    WEFT_RETURN_IF_ERROR(Give(c, a, b, kept, sums));
    c.SetOutput(2, *a.shape);
    return absl::OkStatus();
  }
};

// Each side's entry gets the gradient of the sum at its place, where the sum has one.
class AddGradientKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& gradient = c.input(0);
    const Tensor& sums = c.input(3);
    if (gradient.rank() != 1) {
      return InvalidArgument("Input backprop_val_grad must be a vector, got shape ",
                             gradient.shape().ToString());
    }
    for (int i = 1; i <= 3; ++i) {
      const bool are_matrices = c.input(i).rank() == 2 && sums.rank() == 2;
      if (are_matrices && c.input(i).dim(1) == sums.dim(1)) continue;
      return InvalidArgument("Input indices should be matrices of equal width, got shape ",
                             c.input(i).shape().ToString());
    }
    if (gradient.dim(0) != sums.dim(0)) {
      return InvalidArgument(
          "# elements in backprop_val_grad and # rows in sum_indices should match: ",
          gradient.dim(0), " and ", sums.dim(0));
    }
    for (int side = 0; side < 2; ++side) {
      WEFT_RETURN_IF_ERROR(GiveSide(c, c.input(1 + side), side));
    }
    return absl::OkStatus();
  }

 private:
  static Status GiveSide(KernelContext& c, const Tensor& indices, int side) {
    const Tensor &gradient = c.input(0), &sums = c.input(3);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(side, Shape{indices.dim(0)}));
    ClearElements(out, 0, out->num_elements());
    const int64_t rank = indices.dim(1);
    int64_t next = 0;
    for (int64_t i = 0; i < indices.dim(0) && next < sums.dim(0);) {
      const int order = ComparePositions(indices.data<int64_t>() + i * rank,
                                         sums.data<int64_t>() + next * rank, rank);
      if (order == 0) CopyElements(gradient, next, 1, out, i);
      if (order <= 0) ++i;
      if (order >= 0) ++next;
    }
    return absl::OkStatus();
  }
};

template <typename Op, typename T>
class ExtremeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const SparseInput a, SparseInputAt(c, 0));
    WEFT_ASSIGN_OR_RETURN(const SparseInput b, SparseInputAt(c, 3));
    WEFT_RETURN_IF_ERROR(CheckSameShape(a, b));
    const std::vector<Pair> pairs = Merge(a, b);
    std::vector<T> values;
    for (const Pair& pair : pairs) {
      values.push_back(Op::template Apply<T>(pair.a >= 0 ? a.values->data<T>()[pair.a] : T(0),
                                             pair.b >= 0 ? b.values->data<T>()[pair.b] : T(0)));
    }
    return Give(c, a, b, pairs, values);
  }
};

template <typename T>
class DenseAddKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &indices = c.input(0), &values = c.input(1), &shape = c.input(2), &b = c.input(3);
    if (indices.rank() != 2 || values.rank() != 1 || shape.rank() != 1) {
      return InvalidArgument("Expected indices [n,rank], values [n] and shape [rank], got ",
                             indices.shape().ToString(), ", ", values.shape().ToString(), ", ",
                             shape.shape().ToString());
    }
    if (values.dim(0) != indices.dim(0)) {
      return InvalidArgument("Dimensions ", indices.dim(0), " and ", values.dim(0),
                             " are not compatible");
    }
    if (shape.dim(0) != indices.dim(1)) {
      return InvalidArgument("Dimensions ", indices.dim(1), " and ", shape.dim(0),
                             " are not compatible");
    }
    bool same = shape.dim(0) == b.rank();
    for (int d = 0; same && d < b.rank(); ++d) same = IndexAt(shape, d) == b.dim(d);
    if (!same) {
      return InvalidArgument("Shapes of the sparse and the dense tensor do not match: ",
                             shape.ToString(), " and ", b.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.ForwardOrAllocateOutput(3, 0, b.shape()));
    if (out->bytes() != b.bytes()) std::copy_n(b.data<T>(), b.num_elements(), out->data<T>());
    for (int64_t i = 0; i < indices.dim(0); ++i) {
      int64_t at = 0;
      for (int d = 0; d < b.rank(); ++d) {
        const int64_t index = IndexAt(indices, i * b.rank() + d);
        if (index < 0 || index >= b.dim(d)) {
          return InvalidArgument("Sparse tensor has some invalid index on dimension ", d,
                                 ": entry ", i, " has ", index, ", need 0 <= index < ", b.dim(d));
        }
        at = at * b.dim(d) + index;
      }
      T& sum = out->data<T>()[at];
      sum = AddOf::Apply<T>(sum, values.data<T>()[i]);
    }
    return absl::OkStatus();
  }
};

Status UnionShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(0, 2));
  c.set_output(0, PartialShape({-1, indices.dim(1)}));
  c.set_output(1, PartialShape({-1}));
  if (c.num_outputs() == 3) c.set_output(2, c.input(2));
  return absl::OkStatus();
}

Status AddGradientShape(ShapeContext& c) {
  for (int side = 0; side < 2; ++side) {
    WEFT_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(1 + side, 2));
    c.set_output(side, PartialShape({indices.dim(0)}));
  }
  return absl::OkStatus();
}

Status DenseAddShape(ShapeContext& c) {
  c.set_output(0, c.input(3));
  return absl::OkStatus();
}

Status AddGradient(GradientContext& c) {
  if (!c.gradient(1)) return absl::OkStatus();
  Node* both =
      c.builder().AddNode("SparseAddGrad", {c.gradient(1), c.input(0), c.input(3), c.output(0)});
  if (both == nullptr) return c.builder().status();
  c.set_input(1, {both, 0});
  c.set_input(4, {both, 1});
  return absl::OkStatus();
}

Status DenseAddGradient(GradientContext& c) {
  c.set_input(1, c.Op("GatherNd", {c.gradient(), c.input(0)}));
  c.set_input(3, c.gradient());
  return absl::OkStatus();
}

OpSpec& TwoSparse(OpSpec& spec) {
  for (const char* side : {"a", "b"}) {
    spec.Input(absl::StrCat(side, "_indices: int64"))
        .Input(absl::StrCat(side, "_values: T"))
        .Input(absl::StrCat(side, "_shape: int64"));
  }
  return spec;
}

template <template <typename> typename K, typename... Ts>
void AddKernels(OpSpec& spec, TypeList<Ts...>) {
  (spec.Kernel({.types = {{"T", DTypesOf<Ts>()}}, .factory = MakeKernel<K<Ts>>()}), ...);
}

template <typename Op>
struct Extreme {
  template <typename T>
  using Kernel = ExtremeKernel<Op, T>;
};

template <typename Op>
void RegisterExtreme(Catalogue& catalogue, const char* name, const char* what) {
  OpSpec spec(name);
  spec.Doc(absl::StrCat("The ", what,
                        " of two sparse tensors at each place where one has a value; the other's "
                        "is 0 there.\nBoth in order and of one shape: InvalidArgument otherwise."));
  TwoSparse(spec)
      .Output("output_indices: int64")
      .Output("output_values: T")
      .Attr(std::is_same_v<Op, MinimumOf> ? "T: numbertype" : "T: realnumbertype")
      .Shape(UnionShape)
      .NoGradient();
  AddKernels<Extreme<Op>::template Kernel>(spec, RealNumbers());
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec add("SparseAdd");
  add.Doc(
      "The sum of two sparse tensors. Where both have a value, a sum whose magnitude is below "
      "thresh "
      "is left out.\nBoth in order and of one shape: InvalidArgument otherwise.");
  TwoSparse(add)
      .Input("thresh: Treal")
      .Output("sum_indices: int64")
      .Output("sum_values: T")
      .Output("sum_shape: int64")
      .Attr("T: numbertype")
      .Attr("Treal: realnumbertype")
      .Shape(UnionShape)
      .Gradient(AddGradient);
  AddKernels<AddKernel>(add, Sums());
  catalogue.Add(std::move(add));
  catalogue.Add(OpSpec("SparseAddGrad")
                    .Doc("The gradients of SparseAdd for both lists of values: zero where the sum "
                         "was dropped.")
                    .Input("backprop_val_grad: T")
                    .Input("a_indices: int64")
                    .Input("b_indices: int64")
                    .Input("sum_indices: int64")
                    .Output("a_val_grad: T")
                    .Output("b_val_grad: T")
                    .Attr("T: numbertype")
                    .Shape(AddGradientShape)
                    .NoGradient()
                    .Kernel(MakeKernel<AddGradientKernel>()));
  OpSpec dense("SparseTensorDenseAdd");
  dense
      .Doc(
          "A dense tensor with a sparse one of the same shape added.\nInvalidArgument for an index "
          "out of range.")
      .Input("a_indices: Tindices")
      .Input("a_values: T")
      .Input("a_shape: Tindices")
      .Input("b: T")
      .Output("output: T")
      .Attr("T: numbertype")
      .Attr("Tindices: {int32, int64}")
      .Shape(DenseAddShape)
      .Gradient(DenseAddGradient);
  AddKernels<DenseAddKernel>(dense, Numbers());
  catalogue.Add(std::move(dense));
  RegisterExtreme<MaximumOf>(catalogue, "SparseSparseMaximum", "larger");
  RegisterExtreme<MinimumOf>(catalogue, "SparseSparseMinimum", "smaller");
}

}  // namespace weft::ops::sparse::add
