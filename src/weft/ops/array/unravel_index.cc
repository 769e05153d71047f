// SPDX-License-Identifier: Apache-2.0
// Places in a flat array as coordinates.
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::unravel_index {
namespace {

class UnravelIndexKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor indices = c.input(0), sizes = c.input(1);
    if (indices.num_elements() == 0) {
      return InvalidArgument("received empty tensor indices: ", indices.shape().ToString());
    }
    if (indices.rank() > 1) {
      return InvalidArgument("The indices can only be scalar or vector, got \"",
                             indices.shape().ToString(), "\"");
    }
    if (sizes.rank() != 1) {
      return InvalidArgument("The indices can only be 1-D, got \"", sizes.shape().ToString(), "\"");
    }
    int64_t total = 1;
    for (int64_t d = 0; d < sizes.dim(0); ++d) {
      const int64_t size = IndexAt(sizes, d);
      if (size == 0) {
        return InvalidArgument("Input dims cannot contain a dim of zero, but dims[", d, "] is");
      }
      WEFT_ASSIGN_OR_RETURN(total, MultiplySizes(total, size));
    }
    const int64_t count = indices.num_elements(), rank = sizes.dim(0);
    const Shape shape = indices.rank() == 0 ? Shape{rank} : Shape{rank, count};
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    std::vector<int64_t> found(static_cast<size_t>(rank * count));
    for (int64_t i = 0; i < count; ++i) {
      int64_t rest = IndexAt(indices, i);
      if (rest < 0 || rest >= total) {
        return InvalidArgument("index is out of bound as with dims: ", rest, " is not in [0, ",
                               total, ")");
      }
      for (int64_t d = rank - 1; d >= 0; --d) {
        const int64_t size = IndexAt(sizes, d);
        found[static_cast<size_t>(d * count + i)] = rest % size;
        rest /= size;
      }
    }
    return StoreIndices(found, out);
  }
};

Status UnravelIndexShape(ShapeContext& c) {
  const PartialShape &indices = c.input(0), &sizes = c.input(1);
  if (!indices.known_rank() || !sizes.known_rank()) return shapes::Unknown(c);
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  if (indices.rank() == 0) {
    c.set_output(0, PartialShape({sizes.dim(0)}));
  } else if (indices.rank() == 1) {
    c.set_output(0, PartialShape({sizes.dim(0), indices.dim(0)}));
  } else {
    return InvalidArgument("Shape must be at most rank 1 but is rank ", indices.rank());
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("UnravelIndex")
                    .Doc("The coordinates, one a row, that places in a flat array have in one of "
                         "shape `dims`.\nInvalidArgument for a place out of range.")
                    .Input("indices: Tidx")
                    .Input("dims: Tidx")
                    .Output("output: Tidx")
                    .Attr("Tidx: {int32, int64} = DT_INT32")
                    .Shape(UnravelIndexShape)
                    .NoGradient()
                    .Kernel(MakeKernel<UnravelIndexKernel>()));
}

}  // namespace weft::ops::array::unravel_index
