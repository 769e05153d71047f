// SPDX-License-Identifier: Apache-2.0
// Reordering dimensions.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_kernel.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::transpose {
namespace {

// `perm` as axes in [0, rank), each once.
StatusOr<IndexVector> Permutation(const Tensor& perm, int rank) {
  if (perm.rank() != 1)
    return InvalidArgument("perm must be rank 1, got shape ", perm.shape().ToString());
  if (perm.num_elements() != rank) {
    return InvalidArgument("transpose expects a vector of size ", rank,
                           ". But input(1) is a vector of size ", perm.num_elements());
  }
  WEFT_ASSIGN_OR_RETURN(IndexVector axes, IndexValues(perm, "perm"));
  absl::InlinedVector<bool, 8> seen(axes.size(), false);
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank)
      return InvalidArgument(axis, " is out of range [0 .. ", rank, ")");
    if (axis < 0) axis += rank;
    if (seen[axis]) return InvalidArgument(axis, " is duplicated in perm");
    seen[axis] = true;
  }
  return axes;
}

template <typename T>
void ConjugateInPlace(Tensor* tensor) {
  for (T& x : tensor->mutable_span<T>()) x = std::conj(x);
}

template <bool kConjugate>
class TransposeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const IndexVector axes, Permutation(c.input(1), input.rank()));
    const IndexVector strides = StridesOf(input.shape());
    Shape shape = input.shape();
    StridedCopy copy;
    int64_t last_moved = -1;  // of the axes longer than 1: they keep their order if it only grows
    bool keeps_order = true;
    for (size_t i = 0; i < axes.size(); ++i) {
      const int axis = static_cast<int>(axes[i]);
      const int64_t size = input.dim(axis);
      shape.SetDim(static_cast<int>(i), size);
      copy.AddDim(size, strides[axis], 0);
      if (size == 1) continue;
      keeps_order = keeps_order && axis > last_moved;
      last_moved = axis;
    }
    const bool conjugate = kConjugate && IsComplex(input.dtype());
    if (keeps_order && !conjugate) {
      WEFT_ASSIGN_OR_RETURN(Tensor view, input.Reshaped(shape));
      c.SetOutput(0, std::move(view));
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    copy.MakeTargetDense();
    Copy(c, std::move(copy), input, output);
    if (conjugate && input.dtype() == DType::kComplex64) ConjugateInPlace<Complex64>(output);
    if (conjugate && input.dtype() == DType::kComplex128) ConjugateInPlace<Complex128>(output);
    return absl::OkStatus();
  }
};

class InvertPermutationKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (input.rank() != 1) {
      return InvalidArgument("invert_permutation expects a 1D vector, got shape ",
                             input.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const IndexVector values, IndexValues(input, "x"));
    const auto size = static_cast<int64_t>(values.size());
    IndexVector inverse(values.size(), -1);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t to = values[i];
      if (to < 0 || to >= size) return InvalidArgument(to, " is not between 0 and ", size);
      if (inverse[to] != -1) return InvalidArgument(to, " is duplicated in the input.");
      inverse[to] = i;
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
    return StoreIndices(inverse, output);
  }
};

Status TransposeShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  WEFT_ASSIGN_OR_RETURN(const PartialShape perm, c.WithRank(1, 1));
  const int64_t rank = input.known_rank() ? input.rank() : perm.dim(0);
  if (perm.dim(0) >= 0 && perm.dim(0) != rank) {
    return InvalidArgument("Permutation has ", perm.dim(0), " entries for rank ", rank);
  }
  if (rank < 0 || rank > kMaxRank) return absl::OkStatus();
  PartialShape out = PartialShape::UnknownOfRank(static_cast<int>(rank));
  if (c.constant(1) != nullptr && input.known_rank()) {
    WEFT_ASSIGN_OR_RETURN(const IndexVector axes, Permutation(*c.constant(1), input.rank()));
    for (int i = 0; i < input.rank(); ++i) out.SetDim(i, input.dim(static_cast<int>(axes[i])));
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status InvertPermutationShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRank(0, 1));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status TransposeGradient(GradientContext& c) {
  c.set_input(0, c.Op(c.node().op(), {c.gradient(), c.Op("InvertPermutation", {c.input(1)})}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Transpose")
          .Doc("Reorders dimensions: dimension i of the output is dimension `perm[i]` of the "
               "input.\n"
               "InvalidArgument if `perm` is not a permutation.")
          .Input("x: T")
          .Input("perm: Tperm")
          .HostInput("perm")
          .Output("y: T")
          .Attr("T: type")
          .Attr("Tperm: {int32, int64} = DT_INT32")
          .Shape(TransposeShape)
          .Gradient(TransposeGradient)
          .Kernel(MakeKernel<TransposeKernel<false>>()));
  catalogue.Add(OpSpec("ConjugateTranspose")
                    .Doc("Transpose of the complex conjugate of `x`.")
                    .Input("x: T")
                    .Input("perm: Tperm")
                    .HostInput("perm")
                    .Output("y: T")
                    .Attr("T: type")
                    .Attr("Tperm: {int32, int64} = DT_INT32")
                    .Shape(TransposeShape)
                    .Gradient(TransposeGradient)
                    .Kernel(MakeKernel<TransposeKernel<true>>()));
  catalogue.Add(OpSpec("InvertPermutation")
                    .Doc("Returns y with y[x[i]] = i. InvalidArgument if `x` is not a permutation.")
                    .Input("x: T")
                    .HostInput("x")
                    .Output("y: T")
                    .HostOutput("y")
                    .Attr("T: {int32, int64} = DT_INT32")
                    .Shape(InvertPermutationShape)
                    .NoGradient()
                    .Kernel(MakeKernel<InvertPermutationKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::array::transpose
