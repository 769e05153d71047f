// SPDX-License-Identifier: Apache-2.0
// Ops about the shape of a tensor, not its elements.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/gradients.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::shape {
namespace {

// One output an input: its sizes.
class ShapeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    for (int i = 0; i < c.num_inputs(); ++i) {
      const Shape& shape = c.input(i).shape();
      WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(i, Shape{shape.rank()}));
      WEFT_RETURN_IF_ERROR(StoreIndices(shape.dims(), output));
    }
    return absl::OkStatus();
  }
};

class RankKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    *output->data<int32_t>() = c.input(0).rank();
    return absl::OkStatus();
  }
};

class SizeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape()));
    const int64_t size = c.input(0).num_elements();
    return StoreIndices(absl::MakeConstSpan(&size, 1), output);
  }
};

class EnsureShapeKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(PartialShape expected, c.Attr<PartialShape>("shape"));
    return std::make_unique<EnsureShapeKernel>(std::move(expected));
  }
  explicit EnsureShapeKernel(PartialShape expected) : expected_(std::move(expected)) {}
  Status Compute(KernelContext& c) override {
    if (!expected_.IsCompatibleWith(c.input(0).shape())) {
      return InvalidArgument("Shape of tensor input ", c.input(0).shape().ToString(),
                             " is not compatible with expected shape ", expected_.ToString(), ".");
    }
    c.SetOutput(0, c.input(0));
    return absl::OkStatus();
  }

 private:
  const PartialShape expected_;
};

Status ShapeShape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, PartialShape{c.input(i).rank()});
  return absl::OkStatus();
}

Status EnsureShapeShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape expected, c.Attr<PartialShape>("shape"));
  WEFT_ASSIGN_OR_RETURN(PartialShape merged, c.input(0).MergeWith(expected));
  c.set_output(0, std::move(merged));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Shape")
                    .AnyDevice()
                    .HostOutput("output")
                    .Doc("Returns the sizes of the input's dimensions as a vector.\n"
                         "InvalidArgument if one does not fit `out_type`.")
                    .Input("input: T")
                    .Output("output: out_type")
                    .Attr("T: type")
                    .Attr("out_type: {int32, int64} = DT_INT32")
                    .Traits({.tells = ShapeFact::kSizes})
                    .Shape(ShapeShape)
                    .NoGradient()
                    .Kernel(MakeKernel<ShapeKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("ShapeN")
                    .AnyDevice()
                    .HostOutput("output")
                    .Doc("Returns the sizes of each input's dimensions, a vector for each.")
                    .Input("input: N * T")
                    .Output("output: N * out_type")
                    .Attr("N: int >= 1")
                    .Attr("T: type")
                    .Attr("out_type: {int32, int64} = DT_INT32")
                    .Traits({.tells = ShapeFact::kSizes})
                    .Shape(ShapeShape)
                    .NoGradient()
                    .Kernel(MakeKernel<ShapeKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("Rank")
                    .AnyDevice()
                    .HostOutput("output")
                    .Doc("Returns the number of the input's dimensions.")
                    .Input("input: T")
                    .Output("output: int32")
                    .Attr("T: type")
                    .Traits({.tells = ShapeFact::kRank})
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<RankKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("Size")
                    .AnyDevice()
                    .HostOutput("output")
                    .Doc("Returns the number of the input's elements.\n"
                         "InvalidArgument if it does not fit `out_type`.")
                    .Input("input: T")
                    .Output("output: out_type")
                    .Attr("T: type")
                    .Attr("out_type: {int32, int64} = DT_INT32")
                    .Traits({.tells = ShapeFact::kNumElements})
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<SizeKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("EnsureShape")
          .AnyDevice()
          .Doc("Returns the input if its shape fits the attribute; InvalidArgument otherwise.")
          .Input("input: T")
          .Output("output: T")
          .Attr("shape: shape")
          .Attr("T: type")
          .Shape(EnsureShapeShape)
          .Gradient(PassGradientOn)
          .Kernel(MakeKernel<EnsureShapeKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::array::shape
