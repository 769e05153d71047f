// SPDX-License-Identifier: Apache-2.0
// Which axes the gradients of a broadcasting op are summed over.
#include <algorithm>

#include "weft/kernel/op_spec.h"

namespace weft::ops::math::broadcast_gradient_args {
namespace {

template <typename T>
class BroadcastGradientArgsKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& s0 = c.input(0);
    const Tensor& s1 = c.input(1);
    for (int i = 0; i < 2; ++i) {
      if (c.input(i).rank() == 1) continue;
      return InvalidArgument("In[", i, "] must be a vector.", c.input(i).shape().ToString());
    }
    const int64_t rank = std::max(s0.dim(0), s1.dim(0));
    absl::InlinedVector<T, 8> axes0, axes1;
    for (int64_t i = 0; i < rank; ++i) {
      const T x = Padded(s0, i - (rank - s0.dim(0)));
      const T y = Padded(s1, i - (rank - s1.dim(0)));
      if (x != y && x != 1 && y != 1) {
        return InvalidArgument("Incompatible shapes: ", Text(s0), " vs. ", Text(s1));
      }
      // Where both are 1, summing changes nothing; TensorFlow lists the axis in both.
      if (x == 1) axes0.push_back(static_cast<T>(i));
      if (y == 1) axes1.push_back(static_cast<T>(i));
    }
    if (std::equal(s0.span<T>().begin(), s0.span<T>().end(), s1.span<T>().begin(),
                   s1.span<T>().end())) {
      axes0.clear();
      axes1.clear();
    }
    WEFT_RETURN_IF_ERROR(Emit(c, 0, axes0));
    return Emit(c, 1, axes1);
  }

 private:
  static T Padded(const Tensor& shape, int64_t i) { return i < 0 ? T(1) : shape.data<T>()[i]; }
  static std::string Text(const Tensor& shape) {
    std::string text = "[";
    for (const T size : shape.span<T>()) absl::StrAppend(&text, text.size() > 1 ? "," : "", size);
    return text + "]";
  }
  static Status Emit(KernelContext& c, int i, const absl::InlinedVector<T, 8>& axes) {
    WEFT_ASSIGN_OR_RETURN(Tensor * out,
                          c.AllocateOutput(i, Shape{static_cast<int64_t>(axes.size())}));
    std::copy(axes.begin(), axes.end(), out->data<T>());
    return absl::OkStatus();
  }
};

Status TwoVectors(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(0, 1).status());
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, PartialShape::UnknownOfRank(1));
  c.set_output(1, PartialShape::UnknownOfRank(1));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("BroadcastGradientArgs")
          .Doc("The axes that gradients of an op with inputs of shapes s0 and s1 are summed "
               "over: r0 for the first input, r1 for the second.")
          .Input("s0: T")
          .HostInput("s0")
          .Input("s1: T")
          .HostInput("s1")
          .Output("r0: T")
          .HostOutput("r0")
          .Output("r1: T")
          .HostOutput("r1")
          .Attr("T: {int32, int64} = DT_INT32")
          .Shape(TwoVectors)
          .NoGradient()
          .Kernel({.types = {{"T", {DType::kInt32}}},
                   .factory = MakeKernel<BroadcastGradientArgsKernel<int32_t>>(),
                   .cost = KernelCost::kInline})
          .Kernel({.types = {{"T", {DType::kInt64}}},
                   .factory = MakeKernel<BroadcastGradientArgsKernel<int64_t>>(),
                   .cost = KernelCost::kInline}));
}

}  // namespace weft::ops::math::broadcast_gradient_args
