// SPDX-License-Identifier: Apache-2.0
// LeakyRelu and its gradient: the slope below zero is an attribute.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/math/functors.h"

namespace weft::ops::nn::leaky_relu {
namespace {

constexpr int64_t kGrain = 32768;

template <bool kGradient>
class LeakyReluKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const float alpha, c.Attr<float>("alpha"));
    return std::make_unique<LeakyReluKernel>(alpha);
  }
  explicit LeakyReluKernel(float alpha) : alpha_(alpha) {}

  Status Compute(KernelContext& c) override {
    const Tensor& first = c.input(0);
    const Tensor& features = c.input(kGradient ? 1 : 0);
    if (first.shape() != features.shape()) {
      return InvalidArgument("Inputs to operation must have the same size and shape.  Input 0: ",
                             first.shape().ToString(),
                             " != input 1: ", features.shape().ToString());
    }
    const std::byte* a = first.bytes();
    const std::byte* b = features.bytes();
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.ForwardOrAllocateOutput(0, 0, first.shape()));
    VisitDType(output->dtype(), RealFloats(), [&]<typename T>() {
      using W = Wide<T>;
      const W alpha = static_cast<W>(alpha_);
      const T* value = reinterpret_cast<const T*>(a);
      const T* x = reinterpret_cast<const T*>(b);
      T* out = output->data<T>();
      c.ParallelFor(output->num_elements(), kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const W scaled = static_cast<W>(value[i]) * alpha;
          if constexpr (kGradient) {
            out[i] = static_cast<W>(x[i]) > W(0) ? value[i] : static_cast<T>(scaled);
          } else {
            // The larger of both for a slope up to 1, the smaller for a steeper one.
            const W plain = static_cast<W>(x[i]);
            out[i] = (alpha <= W(1)) == (scaled > plain) ? static_cast<T>(scaled) : x[i];
          }
        }
      });
    });
    return absl::OkStatus();
  }

 private:
  const float alpha_;
};

// LeakyReluGrad of what comes from above, at `features`.
Status Backward(GradientContext& c, int features) {
  WEFT_ASSIGN_OR_RETURN(const float alpha, c.Attr<float>("alpha"));
  c.set_input(0, c.Op("LeakyReluGrad", {c.gradient(), c.input(features)}, {{"alpha", alpha}}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("LeakyRelu")
                    .Doc("Computes max(features, features * alpha).")
                    .Input("features: T")
                    .Output("activations: T")
                    .Attr("alpha: float = 0.2")
                    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
                    .Shape(shapes::SameAsInput)
                    .Gradient([](GradientContext& c) { return Backward(c, 0); })
                    .Kernel(MakeKernel<LeakyReluKernel<false>>()));
  catalogue.Add(OpSpec("LeakyReluGrad")
                    .Doc("Computes `gradients` where features > 0, else gradients * alpha.")
                    .Input("gradients: T")
                    .Input("features: T")
                    .Output("backprops: T")
                    .Attr("alpha: float = 0.2")
                    .Attr("T: {half, bfloat16, float, double} = DT_FLOAT")
                    .Shape(shapes::MergeInputs)
                    .Gradient([](GradientContext& c) -> Status {
                      WEFT_RETURN_IF_ERROR(Backward(c, 1));
                      c.set_input(1, c.Op("ZerosLike", {c.input(1)}));
                      return absl::OkStatus();
                    })
                    .Kernel(MakeKernel<LeakyReluKernel<true>>()));
}

}  // namespace weft::ops::nn::leaky_relu
