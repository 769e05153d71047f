// SPDX-License-Identifier: Apache-2.0
// Values held between two bounds.
#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"
#include "weft/ops/math/tile_loop.h"

namespace weft::ops::math::clip_by_value {
namespace {

template <typename T>
T Clip(T x, T low, T high) {
  if constexpr (kIsComplex<T>) {
    using R = typename T::value_type;
    return T(Clip<R>(x.real(), low.real(), high.real()),
             Clip<R>(x.imag(), low.imag(), high.imag()));
  } else {
    // In this order, as TensorFlow does: a NaN stays, and the lower bound wins where they cross.
    const Wide<T> a = x, b = low, c = high;
    const Wide<T> cut = c < a ? c : a;
    return static_cast<T>(cut < b ? b : cut);
  }
}

class ClipKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& t = c.input(0);
    const Tensor& low = c.input(1);
    const Tensor& high = c.input(2);
    for (const Tensor* bound : {&low, &high}) {
      if (bound->rank() == 0 || bound->shape() == t.shape()) continue;
      return InvalidArgument(
          "clip_value_min and clip_value_max must be either of the same shape as input, or "
          "a scalar. input shape: ",
          t.shape().ToString(), " clip_value_min shape: ", low.shape().ToString(),
          " clip_value_max shape: ", high.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.ForwardOrAllocateOutput(0, 0, t.shape()));
    const int64_t low_step = low.rank() == 0 ? 0 : 1;
    const int64_t high_step = high.rank() == 0 ? 0 : 1;
    VisitDType(t.dtype(), Numbers(), [&]<typename T>() {
      c.ParallelFor(t.num_elements(), 32768, [&](int64_t begin, int64_t end) {
        const T* x = t.data<T>();
        const T* b = low.data<T>();
        const T* h = high.data<T>();
        T* to = out->data<T>();
        WEFT_INDEPENDENT
        for (int64_t i = begin; i < end; ++i)
          to[i] = Clip<T>(x[i], b[i * low_step], h[i * high_step]);
      });
    });
    return absl::OkStatus();
  }
};

Endpoint SummedTo(GradientContext& c, Endpoint gradient, int i) {
  const Endpoint shape = c.Op("Shape", {c.input(i)});
  const Endpoint axes = c.Op("BroadcastGradientArgs", {shape, c.Op("Shape", {gradient})});
  return c.Op("Reshape", {c.Op("Sum", {gradient, axes}), shape});
}

Status ClipGradient(GradientContext& c) {
  const Endpoint g = c.gradient();
  const Endpoint zero = ScalarOf(c, TypeOf(g), 0);
  const Endpoint below = c.Op("Less", {c.input(0), c.input(1)});
  const Endpoint above = c.Op("Greater", {c.input(0), c.input(2)});
  c.set_input(0, c.Op("SelectV2", {c.Op("LogicalOr", {below, above}), zero, g}));
  c.set_input(1, SummedTo(c, c.Op("SelectV2", {below, g, zero}), 1));
  c.set_input(2, SummedTo(c, c.Op("SelectV2", {above, g, zero}), 2));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("ClipByValue")
                    .Doc("t held between two bounds, which are scalars or have its shape.")
                    .Input("t: T")
                    .Input("clip_value_min: T")
                    .Input("clip_value_max: T")
                    .Output("output: T")
                    .Attr("T: numbertype")
                    .Shape(shapes::SameAsInput)
                    .Gradient(ClipGradient)
                    .Kernel({.types = {{"T",
                                        {DType::kFloat, DType::kDouble, DType::kHalf,
                                         DType::kBfloat16, DType::kInt32, DType::kInt64,
                                         DType::kUint8, DType::kInt8, DType::kInt16, DType::kUint16,
                                         DType::kComplex64, DType::kComplex128}}},
                             .factory = MakeKernel<ClipKernel>()}));
}

}  // namespace weft::ops::math::clip_by_value
