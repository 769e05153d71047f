// SPDX-License-Identifier: Apache-2.0
// Sparse tensors in row-major order.
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/sparse/sparse_input.h"

namespace weft::ops::sparse::reorder {
namespace {

class ReorderKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const SparseInput input, SparseInputAt(c, 0));
    WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, input.indices->shape()));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, input.values->shape()));
    int64_t to = 0;
    for (const int64_t from : input.Order()) {
      std::copy_n(input.position(from), input.rank(), indices->data<int64_t>() + to * input.rank());
      CopyElements(*input.values, from, 1, values, to++);
    }
    return absl::OkStatus();
  }
};

Status ReorderShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape indices, c.WithRank(0, 2));
  WEFT_ASSIGN_OR_RETURN(PartialShape values, c.WithRank(1, 1));
  WEFT_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  c.set_output(0, std::move(indices));
  c.set_output(1, std::move(values));
  return absl::OkStatus();
}

// Where each entry went is found by sorting their numbers in the same way.
Status ReorderGradient(GradientContext& c) {
  if (!c.gradient(1)) return absl::OkStatus();
  GraphBuilder& b = c.builder();
  const Endpoint count = c.Op("Size", {c.input(1)});
  const Endpoint numbers = c.Op("Range", {b.Scalar<int32_t>(0), count, b.Scalar<int32_t>(1)});
  Node* sorted = b.AddNode("SparseReorder", {c.input(0), numbers, c.input(2)});
  if (sorted == nullptr) return b.status();
  const Endpoint places = c.Op("InvertPermutation", {Endpoint{sorted, 1}});
  c.set_input(1, c.Op("GatherV2", {c.gradient(1), places, b.Scalar<int32_t>(0)}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("SparseReorder")
                    .Doc("The entries of a sparse tensor in row-major order.\nindices: [n, rank], "
                         "values: [n], shape: [rank].")
                    .Input("input_indices: int64")
                    .Input("input_values: T")
                    .Input("input_shape: int64")
                    .HostInput("input_shape")
                    .Output("output_indices: int64")
                    .Output("output_values: T")
                    .Attr("T: type")
                    .Shape(ReorderShape)
                    .Gradient(ReorderGradient)
                    .Kernel(MakeKernel<ReorderKernel>()));
}

}  // namespace weft::ops::sparse::reorder
