// SPDX-License-Identifier: Apache-2.0
// Sparse tensors in which each row has an entry: what lookups of embeddings need.
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/row_filling.h"
#include "weft/ops/sparse/sparse_input.h"

namespace weft::ops::sparse::fill_empty_rows {
namespace {

class FillKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const SparseInput input, SparseInputAt(c, 0));
    if (c.input(3).rank() != 0) {
      return InvalidArgument("default_value must be a scalar, saw shape: ",
                             c.input(3).shape().ToString());
    }
    if (input.rank() < 1) return InvalidArgument("Dense shape cannot be empty.");
    const int64_t rows = input.size(0), count = input.count();
    if (rows == 0 && count > 0) {
      return InvalidArgument(
          "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = ", count);
    }
    if (rows < 0) return InvalidArgument("dense_shape[0] is negative: ", rows);
    WEFT_ASSIGN_OR_RETURN(RowPlaces found, PlacesOfRows(c, rows, count, [&](int64_t i) {
                            return input.position(i)[0];
                          }));
    return Write(c, input, found);
  }

 private:
  static Status Write(KernelContext& c, const SparseInput& input, RowPlaces& found) {
    Scratch<int64_t>& next = found.next;
    const int64_t total = next.back(), rank = input.rank();
    WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape{total, rank}));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, Shape{total}));
    WEFT_ASSIGN_OR_RETURN(Tensor * places, c.AllocateOutput(3, Shape{input.count()}));
    for (int64_t row = 0; row < input.size(0); ++row) {
      if (!found.is_empty[row]) continue;
      const int64_t to = next[row];
      int64_t* position = indices->data<int64_t>() + to * rank;
      std::fill_n(position, rank, 0);
      position[0] = row;
      CopyElements(c.input(3), 0, 1, values, to);
    }
    for (int64_t i = 0; i < input.count(); ++i) {
      const int64_t to = next[input.position(i)[0]]++;
      std::copy_n(input.position(i), rank, indices->data<int64_t>() + to * rank);
      CopyElements(*input.values, i, 1, values, to);
      places->data<int64_t>()[i] = to;
    }
    return absl::OkStatus();
  }
};

Status FillShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape indices, c.WithRank(0, 2));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(2, 1).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(3, 0).status());
  const Tensor* shape = c.constant(2);
  const bool known = shape != nullptr && shape->rank() == 1 && shape->num_elements() > 0;
  c.set_output(0, PartialShape({-1, indices.dim(1)}));
  c.set_output(1, PartialShape({-1}));
  c.set_output(2, PartialShape({known ? std::max<int64_t>(-1, shape->data<int64_t>()[0]) : -1}));
  c.set_output(3, PartialShape({indices.dim(0)}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("SparseFillEmptyRows")
          .Doc(
              "Gives each row of a sparse tensor that has no entry one, default_value in its first "
              "column.\nempty_row_indicator: which rows those were; reverse_index_map: where each "
              "entry went. Entries of a row stay together, rows come in order.\nInvalidArgument "
              "for a row out of range.")
          .Input("indices: int64")
          .Input("values: T")
          .Input("dense_shape: int64")
          .HostInput("dense_shape")
          .Input("default_value: T")
          .Output("output_indices: int64")
          .Output("output_values: T")
          .Output("empty_row_indicator: bool")
          .Output("reverse_index_map: int64")
          .Attr("T: type")
          .Shape(FillShape)
          .Gradient(FillRowsGradient("SparseFillEmptyRowsGrad"))
          .Kernel(MakeKernel<FillKernel>()));
  catalogue.Add(FillRowsGradientOp("SparseFillEmptyRowsGrad", "SparseFillEmptyRows"));
}

}  // namespace weft::ops::sparse::fill_empty_rows
