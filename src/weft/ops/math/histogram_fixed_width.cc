// SPDX-License-Identifier: Apache-2.0
// How many values fall into each of some bins of equal width.
#include <algorithm>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::math::histogram_fixed_width {
namespace {

template <typename T>
class HistogramKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &values = c.input(0), &range = c.input(1), &bins = c.input(2);
    if (range.rank() != 1 || range.dim(0) != 2) {
      return InvalidArgument("value_range should be a vector of 2 elements, got shape ",
                             range.shape().ToString());
    }
    if (bins.rank() != 0) {
      return InvalidArgument("nbins should be a scalar, got shape ", bins.shape().ToString());
    }
    const T low = range.data<T>()[0], high = range.data<T>()[1];
    const int64_t count = bins.scalar<int32_t>();
    if (!(low < high)) {
      return InvalidArgument("value_range should satisfy value_range[0] < value_range[1], but got ",
                             range.ToString());
    }
    if (count <= 0) return InvalidArgument("nbins should be a positive number, but got ", count);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{count}));
    // As TensorFlow reckons it: a range as wide as the type has a width all the same.
    const auto from = static_cast<double>(low), parts = static_cast<double>(count);
    const double width = static_cast<double>(high) / parts - from / parts;
    VisitDType(out->dtype(), TypeList<int32_t, int64_t>(), [&]<typename Count>() {
      std::fill_n(out->data<Count>(), count, Count(0));
      for (const T value : values.span<T>()) {
        // What compares to nothing goes nowhere in particular: to the first bin.
        const double at = (static_cast<double>(std::max(low, value)) - from) / width;
        const double last = parts - 1;
        ++out->data<Count>()[at > 0 ? static_cast<int64_t>(std::min(at, last)) : 0];
      }
    });
    return absl::OkStatus();
  }
};

Status BinsShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(2, 0).status());
  const int64_t bins = c.constant(2) != nullptr ? IndexAt(*c.constant(2), 0) : -1;
  if (c.constant(2) != nullptr && bins <= 0) {
    return InvalidArgument("nbins should be a positive number, but got ", bins);
  }
  c.set_output(0, PartialShape{bins});
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec spec("HistogramFixedWidth");
  spec.Doc(
          "How many values fall into each of nbins bins of equal width between value_range[0] and "
          "value_range[1].\nWhat lies below counts for the first bin, above for the last.")
      .Input("values: T")
      .Input("value_range: T")
      .HostInput("value_range")
      .Input("nbins: int32")
      .HostInput("nbins")
      .Output("out: dtype")
      .Attr("T: {int32, int64, float, double}")
      .Attr("dtype: {int32, int64} = DT_INT32")
      .Shape(BinsShape)
      .NoGradient();
  const auto add = [&]<typename T>() {
    spec.Kernel({.types = {{"T", DTypesOf<T>()}}, .factory = MakeKernel<HistogramKernel<T>>()});
  };
  add.operator()<int32_t>();
  add.operator()<int64_t>();
  add.operator()<float>();
  add.operator()<double>();
  catalogue.Add(std::move(spec));
}

}  // namespace weft::ops::math::histogram_fixed_width
