// SPDX-License-Identifier: Apache-2.0
// Sparse tensors of another shape: the same entries in row-major order.
#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_join.h"

#include "weft/kernel/op_spec.h"

namespace weft::ops::sparse::reshape {
namespace {

// Row-major: what one step along each axis means.
std::vector<int64_t> Strides(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

StatusOr<int64_t> Product(const std::vector<int64_t>& sizes, const char* what) {
  int64_t product = 1;
  for (const int64_t size : sizes) {
    const StatusOr<int64_t> more = MultiplySizes(product, size);
    if (!more.ok()) {
      return InvalidArgument("The ", what, " is no shape: [", absl::StrJoin(sizes, ","), "]");
    }
    product = *more;
  }
  return product;
}

// `wanted` with its -1 filled in.
StatusOr<std::vector<int64_t>> Resolve(const std::vector<int64_t>& from,
                                       std::vector<int64_t> wanted) {
  WEFT_ASSIGN_OR_RETURN(const int64_t dense, Product(from, "input shape"));
  const auto open = std::find(wanted.begin(), wanted.end(), -1);
  if (open == wanted.end()) {
    WEFT_ASSIGN_OR_RETURN(const int64_t elements, Product(wanted, "new shape"));
    if (elements == dense) return wanted;
    return InvalidArgument("Input to reshape is a tensor with ", dense,
                           " dense values, but the requested shape has ", elements, ": [",
                           absl::StrJoin(from, ","), "] to [", absl::StrJoin(wanted, ","), "]");
  }
  const auto second = std::find(open + 1, wanted.end(), -1);
  if (second != wanted.end()) {
    return InvalidArgument("only one output dimension may be -1, not both ", open - wanted.begin(),
                           " and ", second - wanted.begin());
  }
  *open = 1;
  WEFT_ASSIGN_OR_RETURN(const int64_t others, Product(wanted, "new shape"));
  if (others <= 0) {
    return InvalidArgument(
        "reshape cannot infer the missing input size for an empty tensor unless "
        "all specified input sizes are non-zero");
  }
  if (dense % others != 0) {
    return InvalidArgument("Input to reshape is a SparseTensor with ", dense,
                           " dense values, but the requested shape requires a multiple of ",
                           others);
  }
  *open = dense / others;
  return wanted;
}

class ReshapeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &indices = c.input(0), &old_shape = c.input(1), &new_shape = c.input(2);
    if (indices.rank() != 2) {
      return InvalidArgument("Input indices should be a matrix but received shape ",
                             indices.shape().ToString());
    }
    if (old_shape.rank() != 1 || new_shape.rank() != 1) {
      return InvalidArgument("Shapes should be vectors but received shapes ",
                             old_shape.shape().ToString(), " and ", new_shape.shape().ToString());
    }
    if (indices.dim(1) != old_shape.dim(0)) {
      return InvalidArgument("Input tensor rank must match input shape length, got ",
                             indices.shape().ToString(), " and ", old_shape.dim(0));
    }
    const std::vector<int64_t> from(old_shape.data<int64_t>(),
                                    old_shape.data<int64_t>() + old_shape.num_elements());
    const std::vector<int64_t> asked(new_shape.data<int64_t>(),
                                     new_shape.data<int64_t>() + new_shape.num_elements());
    WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> to, Resolve(from, asked));
    c.SetOutput(1, Tensor::FromSpan<int64_t>(Shape{static_cast<int64_t>(to.size())}, to));
    if (from == to) {
      c.SetOutput(0, indices);
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(
        Tensor * out, c.AllocateOutput(0, Shape{indices.dim(0), static_cast<int64_t>(to.size())}));
    Move(indices, Strides(from), Strides(to), out);
    return absl::OkStatus();
  }

 private:
  static void Move(const Tensor& indices, const std::vector<int64_t>& from,
                   const std::vector<int64_t>& to, Tensor* out) {
    const int64_t* position = indices.data<int64_t>();
    int64_t* moved = out->data<int64_t>();
    for (int64_t i = 0; i < indices.dim(0); ++i) {
      uint64_t place = 0;  // positions outside of the shape may overflow, which harms nobody
      for (const int64_t stride : from) {
        place += static_cast<uint64_t>(*position++) * static_cast<uint64_t>(stride);
      }
      auto rest = static_cast<int64_t>(place);
      for (const int64_t stride : to) {
        *moved++ = stride == 0 ? 0 : rest / stride;
        if (stride != 0) rest %= stride;
      }
    }
  }
};

Status ReshapeShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(0, 2));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEFT_ASSIGN_OR_RETURN(const PartialShape shape, c.WithRank(2, 1));
  c.set_output(0, PartialShape({indices.dim(0), shape.dim(0)}));
  c.set_output(1, shape);
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SparseReshape")
                    .Doc("Where the entries of a sparse tensor lie in another shape.\nOne size of "
                         "new_shape may be -1: it is what is left. InvalidArgument if the shapes "
                         "have different numbers of elements.")
                    .Input("input_indices: int64")
                    .Input("input_shape: int64")
                    .HostInput("input_shape")
                    .Input("new_shape: int64")
                    .HostInput("new_shape")
                    .Output("output_indices: int64")
                    .Output("output_shape: int64")
                    .HostOutput("output_shape")
                    .Shape(ReshapeShape)
                    .NoGradient()
                    .Kernel(MakeKernel<ReshapeKernel>()));
}

}  // namespace weft::ops::sparse::reshape
