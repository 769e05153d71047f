// SPDX-License-Identifier: Apache-2.0
// GatherNd: slices of a tensor named by index tuples.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/nd_index_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::gather_nd {
namespace {

class GatherNdKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const bool ignore, IgnoresBadIndices(c.call().attrs()));
    return std::make_unique<GatherNdKernel>(ignore);
  }
  explicit GatherNdKernel(bool ignore_bad) : ignore_bad_(ignore_bad) {}

  Status Compute(KernelContext& c) override {
    const Tensor& params = c.input(0);
    const Tensor& indices = c.input(1);
    const Shape shape = params.shape();
    if (shape.rank() < 1) return InvalidArgument("params must be at least a vector");
    WEFT_ASSIGN_OR_RETURN(const NdIndex at, MakeNdIndex(shape, indices));
    Dims sizes(at.outer.dims().begin(), at.outer.dims().end());
    sizes.insert(sizes.end(), at.inner.dims().begin(), at.inner.dims().end());
    WEFT_ASSIGN_OR_RETURN(const Shape result, Shape::Make(sizes));
    if (shape.num_elements() == 0 && result.num_elements() > 0) {
      return InvalidArgument("Requested more than 0 entries, but params is empty.  Params shape: ",
                             shape.ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, result));
    for (int64_t i = 0; i < at.count; ++i) {
      const int64_t slice = SliceAt(at, shape, indices, i);
      if (slice >= 0) {
        CopyElements(params, slice * at.slice, at.slice, output, i * at.slice);
      } else if (ignore_bad_) {
        ClearElements(output, i * at.slice, at.slice);
      } else {
        return BadTuple(indices, i, shape, "param shape");
      }
    }
    return absl::OkStatus();
  }

 private:
  const bool ignore_bad_;
};

Status GatherNdShape(ShapeContext& c) {
  const PartialShape& params = c.input(0);
  WEFT_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRankAtLeast(1, 1));
  if (!indices.known_rank() || !params.known_rank()) return absl::OkStatus();
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth < 0) return absl::OkStatus();
  if (depth > params.rank()) {
    return InvalidArgument("indices.shape[-1] must be <= params.rank, but saw indices shape: ",
                           indices.ToString(), " and params shape: ", params.ToString());
  }
  Dims sizes(indices.dims().begin(), indices.dims().end() - 1);
  sizes.insert(sizes.end(), params.dims().begin() + depth, params.dims().end());
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(sizes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status GatherNdGradient(GradientContext& c) {
  const DType index = c.node().input_type(1).dtype;
  const Endpoint shape =
      c.Op("Shape", {c.input(0)}, {{"out_type", index == DType::kInt64 ? index : DType::kInt32}});
  const Endpoint indices =
      index == DType::kInt16 ? c.Op("Cast", {c.input(1)}, {{"DstT", DType::kInt32}}) : c.input(1);
  c.set_input(0, c.Op("ScatterNd", {indices, c.gradient(), shape}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("GatherNd")
          .Doc("Returns the slices of `params` that the tuples in the last dimension of `indices` "
               "name.\n"
               "A tuple outside of `params` is InvalidArgument, or gives zeros where "
               "bad_indices_policy is IGNORE.")
          .Input("params: Tparams")
          .Input("indices: Tindices")
          .Output("output: Tparams")
          .Attr("Tparams: type")
          .Attr("Tindices: {int16, int32, int64}")
          .Attr("bad_indices_policy: string = ''")
          .Shape(GatherNdShape)
          .Gradient(GatherNdGradient)
          .Kernel(MakeKernel<GatherNdKernel>()));
}

}  // namespace weft::ops::array::gather_nd
