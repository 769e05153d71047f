// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/row_filling.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace weft::ops {
namespace {

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

Status FillGradientShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape places, c.WithRank(0, 1));
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, std::move(places));
  c.set_output(1, Shape());
  return absl::OkStatus();
}

template <typename... Ts>
void AddKernels(OpSpec* spec, TypeList<Ts...>) {
  (spec->Kernel(
       {.types = {{"T", DTypesOf<Ts>()}}, .factory = MakeKernel<FillGradientKernel<Ts>>()}),
   ...);
}

}  // namespace

StatusOr<RowPlaces> PlacesOfRows(KernelContext& c, int64_t rows, int64_t entries,
                                 absl::FunctionRef<int64_t(int64_t)> row_of) {
  WEFT_RETURN_IF_ERROR(CheckRoomFor(rows, sizeof(int64_t), "rows"));
  WEFT_ASSIGN_OR_RETURN(Scratch<int64_t> next, Scratch<int64_t>::Make(rows + 1));
  for (int64_t i = 0; i < entries; ++i) {
    const int64_t row = row_of(i);
    if (row < 0 || row >= rows) {
      return InvalidArgument("indices(", i, ", 0) is invalid: ", row, " >= ", rows);
    }
    ++next[row + 1];
  }
  WEFT_ASSIGN_OR_RETURN(Tensor * is_empty, c.AllocateOutput(2, Shape{rows}));
  for (int64_t row = 0; row < rows; ++row) {
    int64_t& held = next[row + 1];
    is_empty->data<bool>()[row] = held == 0;
    held = std::max<int64_t>(held, 1) + next[row];
  }
  return RowPlaces{std::move(next), is_empty->data<bool>()};
}

OpSpec FillRowsGradientOp(const std::string& name, const std::string& of) {
  OpSpec spec(name);
  spec.Doc("The gradient of " + of +
           ": of each entry, and of default_value.\n"
           "InvalidArgument for an index out of range.")
      .Input("reverse_index_map: int64")
      .Input("grad_values: T")
      .Output("d_values: T")
      .Output("d_default_value: T")
      .Attr("T: type")
      .Shape(FillGradientShape)
      .NoGradient();
  AddKernels(&spec, Numbers());
  return spec;
}

GradientFunction FillRowsGradient(const std::string& name) {
  return [name](GradientContext& c) {
    if (!c.gradient(1)) return absl::OkStatus();
    Node* both = c.builder().AddNode(name, {c.output(3), c.gradient(1)});
    if (both == nullptr) return c.builder().status();
    c.set_input(1, {both, 0});
    c.set_input(3, {both, 1});
    return absl::OkStatus();
  };
}

}  // namespace weft::ops
