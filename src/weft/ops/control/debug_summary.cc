// SPDX-License-Identifier: Apache-2.0
// What a debugger wants to know of a tensor's numbers.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"

namespace weft::ops::control::debug_summary {
namespace {

// tensor_debug_mode.
enum Mode : int64_t {
  kCurtHealth = 2,
  kConciseHealth = 3,
  kFullHealth = 4,
  kShape = 5,
  kReduceInfNan = 8,
};

struct Counts {
  double negative_infinite = 0, infinite = 0, nan = 0;
  double negative = 0, zero = 0, positive = 0;
  bool is_sick() const { return negative_infinite + infinite + nan > 0; }
};

using Counted = TypeList<float, double, Half, Bfloat16, int32_t, int64_t, uint8_t, int8_t, int16_t,
                         uint16_t, uint32_t, uint64_t, bool>;

Counts Count(const Tensor& tensor) {
  Counts counts;
  VisitDType(tensor.dtype(), Counted(), [&]<typename T>() {
    for (const T& element : tensor.span<T>()) {
      const auto x = static_cast<double>(element);
      if (std::isnan(x)) {
        ++counts.nan;
      } else if (std::isinf(x)) {
        ++(x < 0 ? counts.negative_infinite : counts.infinite);
      } else {
        ++(x == 0 ? counts.zero : x < 0 ? counts.negative : counts.positive);
      }
    }
  });
  return counts;
}

class SummaryKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const auto mode, c.Attr<int64_t>("tensor_debug_mode"));
    WEFT_ASSIGN_OR_RETURN(const auto id, c.Attr<int64_t>("tensor_id"));
    if (mode != kCurtHealth && mode != kConciseHealth && mode != kFullHealth && mode != kShape &&
        mode != kReduceInfNan) {
      return Unimplemented("Unimplemented tensor debug mode: ", mode);
    }
    return std::make_unique<SummaryKernel>(mode, static_cast<double>(id));
  }
  SummaryKernel(int64_t mode, double id) : mode_(mode), id_(id) {}

  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (mode_ != kShape && !VisitDType(input.dtype(), Counted(), []<typename T>() {})) {
      return InvalidArgument("Elements of ", DTypeName(input.dtype()), " have no numeric summary");
    }
    const std::vector<double> row = RowOf(input);
    WEFT_ASSIGN_OR_RETURN(Tensor * out,
                          c.AllocateOutput(0, Shape{static_cast<int64_t>(row.size())}));
    VisitDType(out->dtype(), TypeList<float, double>(), [&]<typename T>() {
      std::transform(row.begin(), row.end(), out->data<T>(),
                     [](double x) { return static_cast<T>(x); });
    });
    return absl::OkStatus();
  }

 private:
  static constexpr int kShownDims = 6;

  std::vector<double> RowOf(const Tensor& input) const {
    const auto dtype = static_cast<double>(input.dtype());
    const auto rank = static_cast<double>(input.rank()),
               size = static_cast<double>(input.num_elements());
    if (mode_ == kShape) {
      std::vector<double> row = {id_, dtype, rank, size};
      const int first = std::max(0, input.rank() - kShownDims);
      for (int d = 0; d < kShownDims; ++d) {
        row.push_back(first + d < input.rank() ? static_cast<double>(input.dim(first + d)) : 0);
      }
      return row;
    }
    const Counts n = Count(input);
    if (mode_ == kCurtHealth) return {id_, n.is_sick() ? 1.0 : 0.0};
    if (mode_ == kConciseHealth) return {id_, size, n.negative_infinite, n.infinite, n.nan};
    if (mode_ == kReduceInfNan) {
      constexpr double kInf = std::numeric_limits<double>::infinity();
      return {n.negative_infinite > 0 ? -kInf : 0, n.infinite > 0 ? kInf : 0,
              n.nan > 0 ? std::numeric_limits<double>::quiet_NaN() : 0};
    }
    constexpr double kNoDevice = -1;
    return {id_,        kNoDevice, dtype,      rank,   size,      n.negative_infinite,
            n.infinite, n.nan,     n.negative, n.zero, n.positive};
  }

  const int64_t mode_;
  const double id_;
};

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("DebugNumericSummaryV2")
                    .Doc("Numbers about a tensor: how many elements are infinite, NaN, negative, "
                         "zero and positive, or its shape, by tensor_debug_mode (2, 3, 4, 5 or 8)."
                         "\nUnimplemented for other modes.")
                    .Input("input: T")
                    .Output("output: output_dtype")
                    .Attr("output_dtype: {float, double} = DT_FLOAT")
                    .Attr("T: type")
                    .Attr("tensor_debug_mode: int = -1")
                    .Attr("tensor_id: int = -1")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<SummaryKernel>()));
}

}  // namespace weft::ops::control::debug_summary
