// SPDX-License-Identifier: Apache-2.0
// Ragged tensors in which each row has a value.
#include <algorithm>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/elements.h"

namespace weft::ops::ragged::fill_empty_rows {
namespace {

class FillKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &rows = c.input(0), &values = c.input(1), &count = c.input(2);
    WEFT_RETURN_IF_ERROR(Check(c));
    const int64_t num_rows = count.scalar<int64_t>(), num_values = values.dim(0);
    // Of each row, after its values.
    WEFT_ASSIGN_OR_RETURN(Scratch<int64_t> next, Scratch<int64_t>::Make(num_rows + 1));
    for (int64_t i = 0; i < num_values; ++i) {
      const int64_t row = rows.data<int64_t>()[i];
      if (row < 0 || row >= num_rows) {
        return InvalidArgument("indices(", i, ", 0) is invalid: ", row, " >= ", num_rows);
      }
      ++next[row + 1];
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * is_empty, c.AllocateOutput(2, Shape{num_rows}));
    for (int64_t row = 0; row < num_rows; ++row) {
      int64_t& held = next[row + 1];
      is_empty->data<bool>()[row] = held == 0;
      held = std::max<int64_t>(held, 1) + next[row];
    }
    const int64_t total = next.back();
    WEFT_ASSIGN_OR_RETURN(Tensor * out_rows, c.AllocateOutput(0, Shape{total}));
    WEFT_ASSIGN_OR_RETURN(Tensor * out_values, c.AllocateOutput(1, Shape{total}));
    WEFT_ASSIGN_OR_RETURN(Tensor * places, c.AllocateOutput(3, Shape{num_values}));
    for (int64_t row = 0; row < num_rows; ++row) {
      std::fill(out_rows->data<int64_t>() + next[row], out_rows->data<int64_t>() + next[row + 1],
                row);
      if (is_empty->data<bool>()[row]) CopyElements(c.input(3), 0, 1, out_values, next[row]);
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
    return CheckRoomFor(num_rows, sizeof(int64_t), "rows");
  }
};

template <typename T>
class FillGradientKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &places = c.input(0), &gradient = c.input(1);
    if (places.rank() != 1 || gradient.rank() != 1) {
      return InvalidArgument("reverse_index_map and grad_values must be vectors, saw: ",
                             places.shape().ToString(), " and ", gradient.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(0, places.shape()));
    WEFT_ASSIGN_OR_RETURN(Tensor * filled, c.AllocateOutput(1, Shape()));
    const int64_t total = gradient.dim(0);
    std::vector<bool> taken(static_cast<size_t>(total), false);
    for (int64_t i = 0; i < places.num_elements(); ++i) {
      const int64_t place = places.data<int64_t>()[i];
      if (place < 0 || place >= total) {
        return InvalidArgument("Elements in reverse index must be in [0, ", total, ") but got ",
                               place);
      }
      values->data<T>()[i] = gradient.data<T>()[place];
      taken[static_cast<size_t>(place)] = true;
    }
    T sum{};
    for (int64_t i = 0; i < total; ++i) {
      if (!taken[static_cast<size_t>(i)]) sum = static_cast<T>(sum + gradient.data<T>()[i]);
    }
    *filled->data<T>() = sum;
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

Status FillGradientShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape places, c.WithRank(0, 1));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, std::move(places));
  c.set_output(1, Shape());
  return absl::OkStatus();
}

Status FillGradient(GradientContext& c) {
  if (!c.gradient(1)) return absl::OkStatus();
  Node* both = c.builder().AddNode("RaggedFillEmptyRowsGrad", {c.output(3), c.gradient(1)});
  if (both == nullptr) return c.builder().status();
  c.set_input(1, {both, 0});
  c.set_input(3, {both, 1});
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
                    .Gradient(FillGradient)
                    .Kernel(MakeKernel<FillKernel>()));
  OpSpec gradient("RaggedFillEmptyRowsGrad");
  gradient
      .Doc(
          "The gradient of RaggedFillEmptyRows: of each value, and of default_value.\n"
          "InvalidArgument for an index out of range.")
      .Input("reverse_index_map: int64")
      .Input("grad_values: T")
      .Output("d_values: T")
      .Output("d_default_value: T")
      .Attr("T: type")
      .Shape(FillGradientShape)
      .NoGradient();
  const auto add = [&]<typename... Ts>(TypeList<Ts...>) {
    (gradient.Kernel(
         {.types = {{"T", DTypesOf<Ts>()}}, .factory = MakeKernel<FillGradientKernel<Ts>>()}),
     ...);
  };
  add(Numbers());
  catalogue.Add(std::move(gradient));
}

}  // namespace weft::ops::ragged::fill_empty_rows
