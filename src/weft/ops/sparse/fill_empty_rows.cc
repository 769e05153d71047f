// SPDX-License-Identifier: Apache-2.0
// Sparse tensors in which each row has an entry: what lookups of embeddings need.
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/elements.h"
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
    WEFT_RETURN_IF_ERROR(CheckRoomFor(rows, sizeof(int64_t), "rows"));
    // Of each row, after its entries.
    WEFT_ASSIGN_OR_RETURN(Scratch<int64_t> next, Scratch<int64_t>::Make(rows + 1));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = input.position(i)[0];
      if (row < 0 || row >= rows) {
        return InvalidArgument("indices(", i, ", 0) is invalid: ", row, " >= ", rows);
      }
      ++next[row + 1];
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * is_empty, c.AllocateOutput(2, Shape{rows}));
    for (int64_t row = 0; row < rows; ++row) {
      int64_t& entries = next[row + 1];
      is_empty->data<bool>()[row] = entries == 0;
      entries = std::max<int64_t>(entries, 1) + next[row];
    }
    return Write(c, input, std::move(next), *is_empty);
  }

 private:
  // next[row]: where the next entry of the row goes.
  static Status Write(KernelContext& c, const SparseInput& input, Scratch<int64_t> next,
                      const Tensor& is_empty) {
    const int64_t total = next.back(), rank = input.rank();
    WEFT_ASSIGN_OR_RETURN(Tensor * indices, c.AllocateOutput(0, Shape{total, rank}));
    WEFT_ASSIGN_OR_RETURN(Tensor * values, c.AllocateOutput(1, Shape{total}));
    WEFT_ASSIGN_OR_RETURN(Tensor * places, c.AllocateOutput(3, Shape{input.count()}));
    for (int64_t row = 0; row < is_empty.num_elements(); ++row) {
      if (!is_empty.data<bool>()[row]) continue;
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

template <typename T>
class FillGradientKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &places = c.input(0), &gradient = c.input(1);
    if (places.rank() != 1) {
      return InvalidArgument("reverse_index_map must be a vector, saw: ",
                             places.shape().ToString());
    }
    if (gradient.rank() != 1) {
      return InvalidArgument("grad_values must be a vector, saw: ", gradient.shape().ToString());
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

Status FillGradientShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape places, c.WithRank(0, 1));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, std::move(places));
  c.set_output(1, Shape());
  return absl::OkStatus();
}

Status FillGradient(GradientContext& c) {
  if (!c.gradient(1)) return absl::OkStatus();
  Node* both = c.builder().AddNode("SparseFillEmptyRowsGrad", {c.output(3), c.gradient(1)});
  if (both == nullptr) return c.builder().status();
  c.set_input(1, {both, 0});
  c.set_input(3, {both, 1});
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
          .Gradient(FillGradient)
          .Kernel(MakeKernel<FillKernel>()));
  OpSpec gradient("SparseFillEmptyRowsGrad");
  gradient
      .Doc(
          "The gradient of SparseFillEmptyRows: of each entry, and of default_value.\n"
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
  add(TypeList<float, double, Half, Bfloat16, int32_t, int64_t, int16_t, int8_t, uint8_t, uint16_t,
               uint32_t, uint64_t, Complex64, Complex128>());
  catalogue.Add(std::move(gradient));
}

}  // namespace weft::ops::sparse::fill_empty_rows
