// SPDX-License-Identifier: Apache-2.0
// Ragged tensors in which each row has a value.
#include <algorithm>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"
#include "weft/ops/row_filling.h"

namespace weft::ops::ragged::fill_empty_rows {
namespace {

class FillKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &rows = c.input(0), &values = c.input(1), &count = c.input(2);
    WEFT_RETURN_IF_ERROR(Check(c));
    const int64_t num_rows = count.scalar<int64_t>(), num_values = values.dim(0);
    WEFT_ASSIGN_OR_RETURN(RowPlaces found, PlacesOfRows(c, num_rows, num_values, [&](int64_t i) {
                            return rows.data<int64_t>()[i];
                          }));
    Scratch<int64_t>& next = found.next;
    const int64_t total = next.back();
    WEFT_ASSIGN_OR_RETURN(Tensor * out_rows, c.AllocateOutput(0, Shape{total}));
    WEFT_ASSIGN_OR_RETURN(Tensor * out_values, c.AllocateOutput(1, Shape{total}));
    WEFT_ASSIGN_OR_RETURN(Tensor * places, c.AllocateOutput(3, Shape{num_values}));
    for (int64_t row = 0; row < num_rows; ++row) {
      std::fill(out_rows->data<int64_t>() + next[row], out_rows->data<int64_t>() + next[row + 1],
                row);
      if (found.is_empty[row]) CopyElements(c.input(3), 0, 1, out_values, next[row]);
    }
    for (int64_t i = 0; i < num_values; ++i) {
      const int64_t to = next[rows.data<int64_t>()[i]]++;
      CopyElements(values, i, 1, out_values, to);
      places->data<int64_t>()[i] = to;
    }
    return absl::OkStatus();
  }

 private:
  static Status Check(KernelContext& c) {
    const Tensor &rows = c.input(0), &values = c.input(1), &count = c.input(2);
    if (rows.rank() != 1) {
      return InvalidArgument("value_rowids must be a vector, saw shape: ", rows.shape().ToString());
    }
    if (values.rank() != 1) {
      return InvalidArgument("values must be a vector, saw shape: ", values.shape().ToString());
    }
    if (rows.dim(0) != values.dim(0)) {
      return InvalidArgument("There are ", rows.dim(0), " value_rowids and ", values.dim(0),
                             " values");
    }
    if (count.rank() != 0 || c.input(3).rank() != 0) {
      return InvalidArgument("nrows and default_value must be scalars, saw shapes: ",
                             count.shape().ToString(), " and ", c.input(3).shape().ToString());
    }
    const int64_t num_rows = count.scalar<int64_t>();
    if (num_rows < 0) return InvalidArgument("nrows must be at least 0, got ", num_rows);
    if (num_rows == 0 && values.dim(0) > 0) {
      return InvalidArgument("Received a ragged tensor of 0 rows with ", values.dim(0), " values");
    }
    return absl::OkStatus();
  }
};

Status FillShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape rows, c.WithRank(0, 1));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(3, 0).status());
  c.set_output(0, PartialShape({-1}));
  c.set_output(1, PartialShape({-1}));
  c.set_output(2, PartialShape({-1}));
  c.set_output(3, std::move(rows));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("RaggedFillEmptyRows")
                    .Doc("Gives each row of a ragged tensor that has no value one, "
                         "default_value.\nvalue_rowids: the row of each value. "
                         "empty_row_indicator: which rows had none; reverse_index_map: where each "
                         "value went. InvalidArgument for a row out of range.")
                    .Input("value_rowids: int64")
                    .Input("values: T")
                    .Input("nrows: int64")
                    .HostInput("nrows")
                    .Input("default_value: T")
                    .Output("output_value_rowids: int64")
                    .Output("output_values: T")
                    .Output("empty_row_indicator: bool")
                    .Output("reverse_index_map: int64")
                    .Attr("T: type")
                    .Shape(FillShape)
                    .Gradient(FillRowsGradient("RaggedFillEmptyRowsGrad"))
                    .Kernel(MakeKernel<FillKernel>()));
  catalogue.Add(FillRowsGradientOp("RaggedFillEmptyRowsGrad", "RaggedFillEmptyRows"));
}

}  // namespace weft::ops::ragged::fill_empty_rows
