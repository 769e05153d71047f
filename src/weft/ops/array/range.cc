// SPDX-License-Identifier: Apache-2.0
// Sequences of numbers: Range and LinSpace.
#include <cmath>
#include <limits>
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::range {
namespace {

using RangeTypes = TypeList<Bfloat16, Half, float, double, int8_t, int16_t, int32_t, int64_t,
                            uint16_t, uint32_t, uint64_t>;

// How many elements; InvalidArgument for a delta of 0 or of the wrong sign.
template <typename T>
StatusOr<int64_t> RangeSize(T start, T limit, T delta) {
  if (delta == T(0)) return InvalidArgument("Requires delta != 0: ", static_cast<double>(delta));
  if (delta > T(0) ? start > limit : limit > start) {
    return InvalidArgument("Requires start ", delta > T(0) ? "<=" : ">=", " limit when delta ",
                           delta > T(0) ? ">" : "<", " 0: ", static_cast<double>(start), "/",
                           static_cast<double>(limit));
  }
  if constexpr (std::is_integral_v<T>) {
    // Distances as unsigned numbers: they may not fit the signed type.
    const uint64_t distance = delta > T(0)
                                  ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                  : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const uint64_t step =
        delta > T(0) ? static_cast<uint64_t>(delta) : 0 - static_cast<uint64_t>(delta);
    const uint64_t size = distance / step + (distance % step != 0 ? 1 : 0);
    if (size > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return InvalidArgument("Requires ((limit - start) / delta) <= ",
                             std::numeric_limits<int64_t>::max());
    }
    return static_cast<int64_t>(size);
  } else {
    using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
    // Each operation rounds to T, as TensorFlow's do.
    const Wide size = std::ceil(std::abs(static_cast<Wide>(T(T(limit - start) / delta))));
    if (!(size < static_cast<Wide>(std::numeric_limits<int64_t>::max()))) {
      return InvalidArgument("Requires ((limit - start) / delta) <= ",
                             std::numeric_limits<int64_t>::max());
    }
    return static_cast<int64_t>(size);
  }
}

class RangeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    constexpr const char* kNames[] = {"start", "limit", "delta"};
    for (int i = 0; i < 3; ++i) {
      if (c.input(i).num_elements() == 1 && c.input(i).rank() <= 1) continue;
      return InvalidArgument(kNames[i], " must be a scalar, not shape ",
                             c.input(i).shape().ToString());
    }
    Status status;
    VisitDType(c.input_dtype(0), RangeTypes(), [&]<typename T>() { status = Run<T>(c); });
    return status;
  }

 private:
  template <typename T>
  static Status Run(KernelContext& c) {
    const T start = *c.input(0).data<T>();
    const T delta = *c.input(2).data<T>();
    WEFT_ASSIGN_OR_RETURN(const int64_t size, RangeSize(start, *c.input(1).data<T>(), delta));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape{size}));
    T* out = output->data<T>();
    if constexpr (std::is_integral_v<T>) {
      // Unsigned, because one step past the last element may overflow.
      using U = std::make_unsigned_t<T>;
      U value = static_cast<U>(start);
      for (int64_t i = 0; i < size; ++i) {
        out[i] = static_cast<T>(value);
        value = static_cast<U>(value + static_cast<U>(delta));
      }
    } else {
      // No sum of steps: its error would grow with the sequence.
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      for (int64_t i = 0; i < size; ++i) {
        out[i] = T(start + T(delta * static_cast<T>(static_cast<Wide>(i))));
      }
    }
    return absl::OkStatus();
  }
};

class LinSpaceKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    constexpr const char* kNames[] = {"start", "stop", "num"};
    for (int i = 0; i < 3; ++i) {
      if (c.input(i).shape().IsScalar()) continue;
      return InvalidArgument(kNames[i], " must be a scalar, not shape ",
                             c.input(i).shape().ToString());
    }
    const int64_t num = IndexAt(c.input(2), 0);
    if (num <= 0) return InvalidArgument("Requires num > 0: ", num);
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape{num}));
    VisitDType(output->dtype(), RealFloats(), [&]<typename T>() {
      const T start = *c.input(0).data<T>();
      const T stop = *c.input(1).data<T>();
      T* out = output->data<T>();
      out[0] = start;
      if (num == 1) return;
      const T step = T((stop - start) / T(static_cast<float>(num - 1)));
      for (int64_t i = 1; i < num - 1; ++i) out[i] = T(start + step * T(static_cast<float>(i)));
      out[num - 1] = stop;
    });
    return absl::OkStatus();
  }
};

Status RangeShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) WEFT_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  c.set_output(0, PartialShape{-1});
  if (c.constant(0) == nullptr || c.constant(1) == nullptr || c.constant(2) == nullptr) {
    return absl::OkStatus();
  }
  Status status;
  VisitDType(c.constant(0)->dtype(), RangeTypes(), [&]<typename T>() {
    const StatusOr<int64_t> size =
        RangeSize(*c.constant(0)->data<T>(), *c.constant(1)->data<T>(), *c.constant(2)->data<T>());
    if (!size.ok()) {
      status = size.status();
    } else {
      c.set_output(0, PartialShape{*size});
    }
  });
  return status;
}

Status LinSpaceShape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) WEFT_RETURN_IF_ERROR(c.WithRank(i, 0).status());
  int64_t num = -1;
  if (c.constant(2) != nullptr) {
    num = IndexAt(*c.constant(2), 0);
    if (num <= 0) return InvalidArgument("Requires num > 0: ", num);
  }
  c.set_output(0, PartialShape{num});
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Range")
          .Doc("Returns start, start + delta, ... up to, not including, `limit`.\n"
               "InvalidArgument for a delta of 0 or one that leads away from the limit.")
          .Input("start: Tidx")
          .HostInput("start")
          .Input("limit: Tidx")
          .HostInput("limit")
          .Input("delta: Tidx")
          .HostInput("delta")
          .Output("output: Tidx")
          .HostOutput("output")
          .Attr("Tidx: {bfloat16, half, float, double, int8, int16, int32, int64, uint16, uint32, "
                "uint64} = DT_INT32")
          .Shape(RangeShape)
          .NoGradient()
          .Kernel(MakeKernel<RangeKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("LinSpace")
          .Doc("Returns `num` numbers with equal steps from `start` to `stop`, both included.")
          .Input("start: T")
          .HostInput("start")
          .Input("stop: T")
          .HostInput("stop")
          .Input("num: Tidx")
          .HostInput("num")
          .Output("output: T")
          .HostOutput("output")
          .Attr("T: {bfloat16, half, float, double}")
          .Attr("Tidx: {int32, int64} = DT_INT32")
          .Shape(LinSpaceShape)
          .NoGradient()
          .Kernel(MakeKernel<LinSpaceKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::array::range
