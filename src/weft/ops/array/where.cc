// SPDX-License-Identifier: Apache-2.0
// Where: the coordinates of what is not zero.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::where {
namespace {

template <typename T>
bool IsSet(const T& x) {
  if constexpr (requires {
                  x.bits;
                  x == x;
                } &&
                !std::is_convertible_v<T, float>) {
    return x.bits != 0;
  } else if constexpr (std::is_convertible_v<T, float> && !std::is_arithmetic_v<T>) {
    return static_cast<float>(x) != 0.0f;
  } else {
    return x != T(0);
  }
}

using WhereTypes = TypeList<bool, float, double, int32_t, uint8_t, int16_t, int8_t, Complex64,
                            int64_t, Qint8, Quint8, Qint32, Bfloat16, Qint16, Quint16, uint16_t,
                            Complex128, Half, uint32_t, uint64_t>;

class WhereKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (input.rank() < 1) {
      return InvalidArgument("WhereOp : Unhandled input dimensions: ", input.rank());
    }
    Status status = Unimplemented("Where of ", DTypeName(input.dtype()));
    VisitDType(input.dtype(), WhereTypes(), [&]<typename T>() { status = Run<T>(c, input); });
    return status;
  }

 private:
  template <typename T>
  static Status Run(KernelContext& c, const Tensor& input) {
    const T* x = input.data<T>();
    const int64_t n = input.num_elements();
    const int rank = input.rank();
    int64_t count = 0;
    for (int64_t i = 0; i < n; ++i) count += IsSet(x[i]) ? 1 : 0;
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape{count, rank}));
    int64_t* out = output->data<int64_t>();
    if (rank == 1) {
      for (int64_t i = 0; i < n; ++i) {
        if (IsSet(x[i])) *out++ = i;
      }
      return absl::OkStatus();
    }
    IndexVector at(rank, 0);
    for (int64_t i = 0; i < n; ++i) {
      if (IsSet(x[i])) out = std::copy(at.begin(), at.end(), out);
      for (int d = rank; d-- > 0;) {
        if (++at[d] < input.dim(d)) break;
        at[d] = 0;
      }
    }
    return absl::OkStatus();
  }
};

Status WhereShape(ShapeContext& c) {
  c.set_output(0, PartialShape{-1, c.input(0).rank()});
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Where")
          .Doc("Returns the coordinates of the elements that are true or not zero, one a row, in "
               "row-major order.")
          .Input("input: T")
          .Output("index: int64")
          .Attr("T: {float, double, int32, uint8, int16, int8, complex64, int64, qint8, quint8, "
                "qint32, bfloat16, qint16, quint16, uint16, complex128, half, uint32, uint64, "
                "bool} = "
                "DT_BOOL")
          .Shape(WhereShape)
          .NoGradient()
          .Kernel(MakeKernel<WhereKernel>()));
}

}  // namespace weft::ops::array::where
