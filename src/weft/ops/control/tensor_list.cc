// SPDX-License-Identifier: Apache-2.0
// Lists of tensors that grow and shrink at their end.
#include <memory>
#include <string>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/control/tensor_list_kernel.h"
#include "weft/ops/index_values.h"

namespace weft::ops::control::tensor_list {
namespace {

class EmptyKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("element_dtype"));
    return std::make_unique<EmptyKernel>(dtype);
  }
  explicit EmptyKernel(DType dtype) : dtype_(dtype) {}
  Status Compute(KernelContext& c) override {
    if (!c.input(1).shape().IsScalar()) {
      return InvalidArgument("max_num_elements expected to be a scalar, got shape: ",
                             c.input(1).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeOf(c.input(0)));
    c.SetOutput(
        0, TensorOf(MakeRef<TensorList>(dtype_, std::move(shape), c.input(1).scalar<int32_t>())));
    return absl::OkStatus();
  }

 private:
  const DType dtype_;
};

class PushBackKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<TensorList> list, TensorListOf(c.input(0)));
    const Tensor& element = c.input(1);
    WEFT_RETURN_IF_ERROR(CheckElement(*list, element));
    if (list->max_length() >= 0 && list->length() >= list->max_length()) {
      return InvalidArgument("Tried to push item into a full list. list size: ", list->length(),
                             " max_num_elements: ", list->max_length());
    }
    c.SetOutput(0, TensorOf(MakeRef<TensorList>(std::move(list), element)));
    return absl::OkStatus();
  }
};

class PopBackKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> list, TensorListOfInput(c, 0, c.output_dtype(1)));
    if (list->length() == 0) return InvalidArgument("Trying to pop from an empty list.");
    Tensor last = list->last();
    if (!last.IsInitialized()) {
      WEFT_ASSIGN_OR_RETURN(const PartialShape wanted, ElementShapeOf(c.input(1)));
      WEFT_ASSIGN_OR_RETURN(const Shape shape, CommonShape(*list, wanted));
      WEFT_ASSIGN_OR_RETURN(last, MissingElement(list->dtype(), shape));
    }
    c.SetOutput(0, TensorOf(list->WithoutLast()));
    c.SetOutput(1, std::move(last));
    return absl::OkStatus();
  }
};

class LengthKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> list, TensorListOf(c.input(0)));
    c.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(list->length())));
    return absl::OkStatus();
  }
};

Status PopBackShape(ShapeContext& c) {
  c.set_output(0, Shape());
  return absl::OkStatus();
}

// What is popped is the gradient of what was pushed.
Status PushBackGradient(GradientContext& c) {
  const DType dtype = c.node().input_type(1).dtype;
  Node* popped =
      c.builder().AddNode("TensorListPopBack", {c.gradient(), c.builder().Scalar<int32_t>(-1)},
                          {{"element_dtype", dtype}});
  if (popped == nullptr) return c.builder().status();
  c.set_input(0, {popped, 0});
  const bool carries = IsFloating(dtype) || IsComplex(dtype) || dtype == DType::kVariant;
  if (carries) c.set_input(1, {popped, 1});
  return absl::OkStatus();
}

Status PopBackGradient(GradientContext& c) {
  const Endpoint element = c.gradient(1) ? c.gradient(1) : c.Op("ZerosLike", {c.output(1)});
  c.set_input(0, c.Op("TensorListPushBack", {c.gradient(0), element}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("EmptyTensorList")
                    .Doc("Returns a list without elements, whose elements will have the shape "
                         "`element_shape`.\n"
                         "`max_num_elements` limits its length where it is not negative.")
                    .Input("element_shape: shape_type")
                    .Input("max_num_elements: int32")
                    .Output("handle: variant")
                    .Attr("element_dtype: type")
                    .Attr("shape_type: {int32, int64}")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<EmptyKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("TensorListPushBack")
                    .Doc("Returns the list with `tensor` behind its elements.\n"
                         "InvalidArgument if its dtype or shape does not fit or the list is full.")
                    .Input("input_handle: variant")
                    .Input("tensor: element_dtype")
                    .Output("output_handle: variant")
                    .Attr("element_dtype: type")
                    .Shape(shapes::Scalar)
                    .Gradient(PushBackGradient)
                    .Kernel(MakeKernel<PushBackKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("TensorListPopBack")
          .Doc("Returns the last element, and the list without it.\n"
               "InvalidArgument if there is none. `element_shape` tells the shape of an element "
               "that nobody set.")
          .Input("input_handle: variant")
          .Input("element_shape: int32")
          .Output("output_handle: variant")
          .Output("tensor: element_dtype")
          .Attr("element_dtype: type")
          .Shape(PopBackShape)
          .Gradient(PopBackGradient)
          .Kernel(MakeKernel<PopBackKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("TensorListLength")
                    .Doc("How many elements the list has.")
                    .Input("input_handle: variant")
                    .Output("length: int32")
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<LengthKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::control::tensor_list
