// SPDX-License-Identifier: Apache-2.0
// Sparse tensors cut into parts along a dimension.
#include <algorithm>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/sparse/sparse_input.h"

namespace weft::ops::sparse::split {
namespace {

class SplitKernel final : public OpKernel {
 public:
  explicit SplitKernel(KernelConstruction& c) : parts_(c.num_outputs() / 3) {}

  Status Compute(KernelContext& c) override {
    const Tensor& axis_tensor = c.input(0);
    if (axis_tensor.num_elements() != 1) {
      return InvalidArgument("split_dim must be a scalar, got shape ",
                             axis_tensor.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const SparseInput input, SparseInputAt(c, 1));
    const int64_t given = axis_tensor.data<int64_t>()[0], rank = input.rank();
    const int64_t axis = given < 0 ? given + rank : given;
    if (axis < 0 || axis >= rank) {
      return InvalidArgument("Input axis should be in range [", -rank, ", ", rank, "), got ",
                             given);
    }
    const int64_t size = input.size(axis);
    if (parts_ < 1 || parts_ > size) {
      return InvalidArgument(
          "Input num_split should be between 1 and the splitting dimension "
          "size (",
          size, "), got ", parts_);
    }
    WEFT_RETURN_IF_ERROR(input.CheckBounds());
    // The first parts have one more where the size is no multiple.
    const int64_t each = size / parts_, more = size % parts_;
    const auto begin_of = [&](int64_t part) { return part * each + std::min(part, more); };
    std::vector<std::vector<int64_t>> entries(static_cast<size_t>(parts_));
    for (int64_t i = 0; i < input.count(); ++i) {
      const int64_t at = input.position(i)[axis], wide = more * (each + 1);
      const int64_t part = at < wide ? at / (each + 1) : more + (at - wide) / each;
      entries[static_cast<size_t>(part)].push_back(i);
    }
    for (int part = 0; part < parts_; ++part) {
      const std::vector<int64_t>& own = entries[static_cast<size_t>(part)];
      const auto count = static_cast<int64_t>(own.size());
      WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(part, Shape{count, rank}));
      WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(parts_ + part, Shape{count}));
      WEFT_ASSIGN_OR_RETURN(Tensor * shape, c.AllocateOutput(2 * parts_ + part, Shape{rank}));
      for (int64_t k = 0; k < count; ++k) {
        int64_t* to = indices->data<int64_t>() + k * rank;
        std::copy_n(input.position(own[static_cast<size_t>(k)]), rank, to);
        to[axis] -= begin_of(part);
        CopyElements(*input.values, own[static_cast<size_t>(k)], 1, values, k);
      }
      for (int64_t d = 0; d < rank; ++d) {
        shape->data<int64_t>()[d] = d == axis ? begin_of(part + 1) - begin_of(part) : input.size(d);
      }
    }
    return absl::OkStatus();
  }

 private:
  const int parts_;
};

Status SplitShape(ShapeContext& c) {
  const int parts = c.num_outputs() / 3;
  const PartialShape& shape = c.input(3);
  const int64_t rank = shape.rank() == 1 ? shape.dim(0) : -1;
  for (int i = 0; i < parts; ++i) {
    c.set_output(i, PartialShape({-1, rank}));
    c.set_output(parts + i, PartialShape({-1}));
    c.set_output(2 * parts + i, PartialShape({rank}));
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SparseSplit")
                    .Doc("Cuts a sparse tensor into num_split parts along a dimension; the first "
                         "have one more where its size is no multiple.\nInvalidArgument for more "
                         "parts than the size.")
                    .Input("split_dim: int64")
                    .HostInput("split_dim")
                    .Input("indices: int64")
                    .Input("values: T")
                    .Input("shape: int64")
                    .HostInput("shape")
                    .Output("output_indices: num_split * int64")
                    .Output("output_values: num_split * T")
                    .Output("output_shape: num_split * int64")
                    .Attr("num_split: int >= 1")
                    .Attr("T: type")
                    .Shape(SplitShape)
                    .NoGradient()
                    .Kernel(MakeKernel<SplitKernel>()));
}

}  // namespace weft::ops::sparse::split
