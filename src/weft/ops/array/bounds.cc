// SPDX-License-Identifier: Apache-2.0
// Where values would stand in sorted rows: LowerBound and UpperBound.
#include <algorithm>
#include <limits>
#include <memory>

#include "weft/kernel/op_spec.h"

namespace weft::ops::array::bounds {
namespace {

using BoundTypes = TypeList<float, double, Half, Bfloat16, int32_t, int64_t, uint8_t, int8_t,
                            int16_t, uint16_t, uint32_t, uint64_t, bool, std::string>;

template <bool kUpper>
class BoundKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& sorted = c.input(0);
    const Tensor& values = c.input(1);
    if (sorted.rank() != 2 || values.rank() != 2) {
      return InvalidArgument("sorted_inputs and values should be 2-D tensors, got ",
                             sorted.shape().ToString(), " and ", values.shape().ToString());
    }
    if (sorted.dim(0) != values.dim(0)) {
      return InvalidArgument("Leading dim_size of both tensors must match, got ", sorted.dim(0),
                             " and ", values.dim(0));
    }
    if (c.output_dtype(0) == DType::kInt32 &&
        std::max(values.num_elements(), sorted.dim(1)) >= std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("values tensor size must less than INT_MAX, got ",
                             values.num_elements());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, values.shape()));
    const bool known = VisitDType(sorted.dtype(), BoundTypes(), [&]<typename T>() {
      VisitDType(output->dtype(), TypeList<int32_t, int64_t>(), [&]<typename Index>() {
        Find(sorted.data<T>(), sorted.dim(1), values.data<T>(), values.dim(0), values.dim(1),
             output->data<Index>());
      });
    });
    return known ? absl::OkStatus()
                 : Unimplemented(c.call().op(), " of ", DTypeName(sorted.dtype()));
  }

 private:
  template <typename T, typename Index>
  static void Find(const T* sorted, int64_t width, const T* values, int64_t rows, int64_t columns,
                   Index* out) {
    for (int64_t row = 0; row < rows; ++row) {
      const T* begin = sorted + row * width;
      for (int64_t i = row * columns; i < (row + 1) * columns; ++i) {
        const T* at = kUpper ? std::upper_bound(begin, begin + width, values[i])
                             : std::lower_bound(begin, begin + width, values[i]);
        out[i] = static_cast<Index>(at - begin);
      }
    }
  }
};

Status BoundShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 2).status());
  WEFT_ASSIGN_OR_RETURN(PartialShape values, c.WithRank(1, 2));
  c.set_output(0, std::move(values));
  return absl::OkStatus();
}

void AddBound(Catalogue& catalogue, const char* name, const char* doc, KernelFactory factory) {
  catalogue.Add(OpSpec(name)
                    .Doc(doc)
                    .Input("sorted_inputs: T")
                    .Input("values: T")
                    .Output("output: out_type")
                    .Attr("T: type")
                    .Attr("out_type: {int32, int64} = DT_INT32")
                    .Shape(BoundShape)
                    .NoGradient()
                    .Kernel(std::move(factory)));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddBound(catalogue, "LowerBound",
           "The first place in its sorted row where each value could stand.",
           MakeKernel<BoundKernel<false>>());
  AddBound(catalogue, "UpperBound",
           "The last place in its sorted row where each value could stand.",
           MakeKernel<BoundKernel<true>>());
}

}  // namespace weft::ops::array::bounds
