// SPDX-License-Identifier: Apache-2.0
// Rows of numbers in equal steps.
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/ragged/splits_kernel.h"

namespace weft::ops::ragged::range {
namespace {

template <typename T>
using Wide = std::conditional_t<std::is_integral_v<T>, int64_t,
                                std::conditional_t<std::is_same_v<T, double>, double, float>>;

// How many numbers there are from `start`, below (or, downwards, above) `limit`.
template <typename W>
StatusOr<int64_t> CountSteps(W start, W limit, W delta) {
  if (delta == W(0)) return InvalidArgument("Requires delta != 0");
  if (delta > 0 ? limit <= start : limit >= start) return int64_t{0};
  if constexpr (std::is_integral_v<W>) {
    const uint64_t distance = delta > 0
                                  ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                  : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const uint64_t step = delta > 0 ? static_cast<uint64_t>(delta) : -static_cast<uint64_t>(delta);
    return static_cast<int64_t>((distance - 1) / step + 1);
  } else {
    const double steps = std::ceil(std::abs(static_cast<double>((limit - start) / delta)));
    if (!(steps < 9e18)) return InvalidArgument("Requires ((limit - start) / delta) <= 2^63");
    return static_cast<int64_t>(steps);
  }
}

template <typename T>
class RangeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    static constexpr const char* kNames[] = {"starts", "limits", "deltas"};
    int64_t rows = 1;
    bool has_vector = false;
    for (int i = 0; i < 3; ++i) {
      const Tensor& input = c.input(i);
      if (input.rank() > 1) {
        return InvalidArgument(kNames[i], " must be a scalar or vector, got shape ",
                               input.shape().ToString());
      }
      if (input.rank() == 0) continue;
      if (has_vector && input.dim(0) != rows) {
        return InvalidArgument("starts, limits, and deltas must have the same shape, got ", rows,
                               " and ", input.dim(0), " rows");
      }
      has_vector = true;
      rows = input.dim(0);
    }
    const auto at = [&](int i, int64_t row) {
      const Tensor& input = c.input(i);
      return static_cast<Wide<T>>(input.data<T>()[input.rank() == 0 ? 0 : row]);
    };
    Splits splits = {0};
    for (int64_t row = 0; row < rows; ++row) {
      WEFT_ASSIGN_OR_RETURN(const int64_t count, CountSteps(at(0, row), at(1, row), at(2, row)));
      if (count > std::numeric_limits<int64_t>::max() - splits.back()) {
        return InvalidArgument("The number of values does not fit int64");
      }
      splits.push_back(splits.back() + count);
    }
    WEFT_RETURN_IF_ERROR(GiveSplits(c, 0, splits));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(1, Shape{splits.back()}));
    for (int64_t row = 0; row < rows; ++row) {
      // Added step by step, as TensorFlow does.
      T value = static_cast<T>(at(0, row));
      const T delta = static_cast<T>(at(2, row));
      for (int64_t i = splits[row]; i < splits[row + 1]; ++i) {
        out->data<T>()[i] = value;
        value = static_cast<T>(static_cast<Wide<T>>(value) + static_cast<Wide<T>>(delta));
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec spec("RaggedRange");
  spec.Doc(
          "For each row the numbers from its start on, in steps of its delta, before its limit.\n"
          "Scalars hold for all rows. InvalidArgument for a delta of 0.")
      .Input("starts: T")
      .Input("limits: T")
      .Input("deltas: T")
      .Output("rt_nested_splits: Tsplits")
      .Output("rt_dense_values: T")
      .Attr("T: {bfloat16, float, double, int32, int64} = DT_INT32")
      .Attr("Tsplits: {int32, int64} = DT_INT64")
      .Shape([](ShapeContext& c) {
        c.set_output(0, PartialShape({-1}));
        c.set_output(1, PartialShape({-1}));
        return absl::OkStatus();
      })
      .NoGradient();
  const auto add = [&]<typename T>() {
    spec.Kernel({.types = {{"T", DTypesOf<T>()}}, .factory = MakeKernel<RangeKernel<T>>()});
  };
  add.operator()<Bfloat16>();
  add.operator()<float>();
  add.operator()<double>();
  add.operator()<int32_t>();
  add.operator()<int64_t>();
  catalogue.Add(std::move(spec));
}

}  // namespace weft::ops::ragged::range
