// SPDX-License-Identifier: Apache-2.0
// Blocks of sparse tensors.
#include <algorithm>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/sparse/sparse_input.h"

namespace weft::ops::sparse::slice {
namespace {

using Numbers = TypeList<float, double, int32_t, uint8_t, int16_t, int8_t, Complex64, int64_t,
                         Bfloat16, uint16_t, Complex128, Half, uint32_t, uint64_t>;

class SliceKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const SparseInput input, SparseInputAt(c, 0));
    const int64_t rank = input.rank();
    for (int i = 3; i <= 4; ++i) {
      if (c.input(i).rank() == 1 && c.input(i).dim(0) == rank) continue;
      return InvalidArgument("Expected ", i == 3 ? "start" : "size", " to be a vector of length ",
                             rank, " but got shape ", c.input(i).shape().ToString());
    }
    const int64_t *start = c.input(3).data<int64_t>(), *size = c.input(4).data<int64_t>();
    std::vector<int64_t> sizes;
    for (int64_t d = 0; d < rank; ++d) {
      if (size[d] < 0) return InvalidArgument("size[", d, "] is negative: ", size[d]);
      // A start in front of the tensor leaves room for what is not there.
      int64_t left = 0;
      if (__builtin_sub_overflow(input.size(d), start[d], &left)) {
        return InvalidArgument("start[", d, "] is out of range: ", start[d]);
      }
      sizes.push_back(std::min(size[d], std::max<int64_t>(left, 0)));
    }
    std::vector<int64_t> kept;
    for (int64_t i = 0; i < input.count(); ++i) {
      bool inside = true;
      for (int64_t d = 0; inside && d < rank; ++d) {
        const int64_t at = input.position(i)[d];
        inside = at >= start[d] && at - start[d] < sizes[static_cast<size_t>(d)];
      }
      if (inside) kept.push_back(i);
    }
    const auto count = static_cast<int64_t>(kept.size());
    WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape{count, rank}));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, Shape{count}));
    for (int64_t to = 0; to < count; ++to) {
      const int64_t from = kept[static_cast<size_t>(to)];
      for (int64_t d = 0; d < rank; ++d) {
        indices->data<int64_t>()[to * rank + d] = input.position(from)[d] - start[d];
      }
      CopyElements(*input.values, from, 1, values, to);
    }
    c.SetOutput(2, Tensor::FromSpan<int64_t>(Shape{rank}, sizes));
    return absl::OkStatus();
  }
};

// Both lists of positions are in one order, so each kept entry is met where the last one was left.
class SliceGradientKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &gradient = c.input(0), &indices = c.input(1), &start = c.input(2),
                 &kept = c.input(3);
    if (gradient.rank() != 1 || start.rank() != 1 || indices.rank() != 2 || kept.rank() != 2) {
      return InvalidArgument(
          "backprop_val_grad and input_start should be vectors, input_indices and output_indices "
          "matrices; got ",
          gradient.shape().ToString(), ", ", start.shape().ToString(), ", ",
          indices.shape().ToString(), ", ", kept.shape().ToString());
    }
    const int64_t rank = indices.dim(1);
    if (kept.dim(1) != rank || start.dim(0) != rank || gradient.dim(0) != kept.dim(0)) {
      return InvalidArgument("The sizes of the inputs do not match: ", gradient.shape().ToString(),
                             ", ", indices.shape().ToString(), ", ", start.shape().ToString(), ", ",
                             kept.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{indices.dim(0)}));
    ClearElements(out, 0, out->num_elements());
    int64_t next = 0;
    for (int64_t i = 0; i < indices.dim(0) && next < kept.dim(0); ++i) {
      bool same = true;
      for (int64_t d = 0; same && d < rank; ++d) {
        same = indices.data<int64_t>()[i * rank + d] ==
               kept.data<int64_t>()[next * rank + d] + start.data<int64_t>()[d];
      }
      if (same) CopyElements(gradient, next++, 1, out, i);
    }
    if (next == kept.dim(0)) return absl::OkStatus();
    return Internal("Elements of backprop_val_grad aren't all propagated: ", next, " of ",
                    kept.dim(0));
  }
};

Status SliceShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(0, 2));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.WithRank(2, 1));
  WEFT_RETURN_IF_ERROR(c.WithRank(3, 1).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(4, 1).status());
  c.set_output(0, PartialShape({-1, indices.dim(1)}));
  c.set_output(1, PartialShape({-1}));
  c.set_output(2, std::move(shape));
  return absl::OkStatus();
}

Status SliceGradientShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(1, 2));
  c.set_output(0, PartialShape({indices.dim(0)}));
  return absl::OkStatus();
}

Status SliceGradient(GradientContext& c) {
  if (!c.gradient(1)) return absl::OkStatus();
  c.set_input(1, c.Op("SparseSliceGrad", {c.gradient(1), c.input(0), c.input(3), c.output(0)}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SparseSlice")
                    .Doc("The entries of a sparse tensor from `start` on, `size` along each axis, "
                         "less where it ends before.")
                    .Input("indices: int64")
                    .Input("values: T")
                    .Input("shape: int64")
                    .HostInput("shape")
                    .Input("start: int64")
                    .HostInput("start")
                    .Input("size: int64")
                    .HostInput("size")
                    .Output("output_indices: int64")
                    .Output("output_values: T")
                    .Output("output_shape: int64")
                    .HostOutput("output_shape")
                    .Attr("T: type")
                    .Shape(SliceShape)
                    .Gradient(SliceGradient)
                    .Kernel(MakeKernel<SliceKernel>()));
  catalogue.Add(OpSpec("SparseSliceGrad")
                    .Doc("The gradient of SparseSlice for the values it was given: zero for those "
                         "outside of the block.")
                    .Input("backprop_val_grad: T")
                    .Input("input_indices: int64")
                    .Input("input_start: int64")
                    .Input("output_indices: int64")
                    .Output("val_grad: T")
                    .Attr("T: numbertype")
                    .Shape(SliceGradientShape)
                    .NoGradient()
                    .Kernel({.types = {{"T", DTypesOf(Numbers())}},
                             .factory = MakeKernel<SliceGradientKernel>()}));
}

}  // namespace weft::ops::sparse::slice
