// SPDX-License-Identifier: Apache-2.0
// How many values fall into each of some bins of equal width.
#include <algorithm>
#include <type_traits>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::math::histogram_fixed_width {
namespace {

// a - b, where a is not less: integers of any sizes do not overflow.
template <typename T>
double Distance(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<double>(static_cast<U>(a) - static_cast<U>(b));
  } else {
    return static_cast<double>(a - b);
  }
}

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
    const double width = Distance(high, low) / static_cast<double>(count);
    VisitDType(out->dtype(), TypeList<int32_t, int64_t>(), [&]<typename Count>() {
      std::fill_n(out->data<Count>(), count, Count(0));
      for (const T value : values.span<T>()) {
        // What compares to nothing goes nowhere in particular: to the first bin.
        const double at = Distance(std::max(low, value), low) / width;
        const double last = static_cast<double>(count - 1);
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
      .Input("nbins: int32")
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
