// SPDX-License-Identifier: Apache-2.0
// Lists of tensors by index: reserved, read, set, made longer and shorter.
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/control/tensor_list_kernel.h"
#include "weft/ops/index_values.h"

namespace weft::ops::control::tensor_list_items {
namespace {

// The int32 in scalar input `i`.
StatusOr<int32_t> ScalarInput(const KernelContext& c, int i, const char* what) {
  if (c.input(i).shape().IsScalar()) return c.input(i).scalar<int32_t>();
  return InvalidArgument(what, " must be a scalar, got shape ", c.input(i).shape().ToString());
}

// ResourceExhausted where memory would not hold the places of so many elements.
Status CheckLength(int64_t length) {
  return CheckRoomFor(length, sizeof(Tensor), "elements of a list");
}

class ReserveKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("element_dtype"));
    return std::make_unique<ReserveKernel>(dtype);
  }
  explicit ReserveKernel(DType dtype) : dtype_(dtype) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const int32_t length, ScalarInput(c, 1, "The num_elements to reserve"));
    if (length < 0) {
      return InvalidArgument("The num_elements to reserve must be a non negative number, but got ",
                             length);
    }
    WEFT_RETURN_IF_ERROR(CheckLength(length));
    const TensorList like(dtype_, std::move(shape), -1);
    c.SetOutput(
        0, TensorOf(MakeRef<TensorList>(like, TensorList::Elements(static_cast<size_t>(length)))));
    return absl::OkStatus();
  }

 private:
  const DType dtype_;
};

class GetItemKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> list, TensorListOfInput(c, 0, c.output_dtype(0)));
    WEFT_ASSIGN_OR_RETURN(const int32_t index, ScalarInput(c, 1, "index"));
    if (index < 0 || index >= list->length()) {
      return InvalidArgument("Trying to access element ", index, " in a list with ", list->length(),
                             " elements.");
    }
    const Tensor& element = list->at(index);
    if (element.IsInitialized()) {
      c.SetOutput(0, element);
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(const PartialShape wanted, ElementShapeOf(c.input(2)));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, CommonShape(*list, wanted));
    WEFT_ASSIGN_OR_RETURN(Tensor zeros, MissingElement(list->dtype(), shape));
    c.SetOutput(0, std::move(zeros));
    return absl::OkStatus();
  }
};

// Sets the element in place where this call alone holds the list.
class SetItemKernel final : public OpKernel {
 public:
  explicit SetItemKernel(KernelConstruction& c)
      : resizes_(c.AttrOr<bool>("resize_if_index_out_of_bounds", false)) {}
  Status Compute(KernelContext& c) override {
    const Tensor item = c.input(2);
    WEFT_ASSIGN_OR_RETURN(Ref<TensorList> list, TensorListOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const int32_t index, ScalarInput(c, 1, "index"));
    WEFT_RETURN_IF_ERROR(CheckElement(*list, item));
    if (index < 0 || (index >= list->length() && !resizes_)) {
      return InvalidArgument("Trying to modify element ", index, " in a list with ", list->length(),
                             " elements.");
    }
    if (index >= list->length()) {
      WEFT_RETURN_IF_ERROR(CheckLength(int64_t{index} + 1));
      TensorList::Elements elements = list->ToElements();
      elements.resize(static_cast<size_t>(index) + 1);
      elements.back() = item;
      c.SetOutput(0, TensorOf(MakeRef<TensorList>(*list, std::move(elements))));
      return absl::OkStatus();
    }
    const std::byte* bytes = c.input(0).bytes();
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.ForwardOrAllocateOutput(0, 0, Shape()));
    Variant& cell = *out->data<Variant>();
    if (out->bytes() == bytes) {
      // The cell and `list` hold it.
      cell.value.reset();
      if (list->HasOneRef() && list->SetInPlace(index, item)) {
        cell.value = std::move(list);
        return absl::OkStatus();
      }
    }
    TensorList::Elements elements = list->ToElements();
    elements[static_cast<size_t>(index)] = item;
    cell.value = MakeRef<TensorList>(*list, std::move(elements));
    return absl::OkStatus();
  }

 private:
  const bool resizes_;
};

class ResizeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> list, TensorListOf(c.input(0)));
    WEFT_ASSIGN_OR_RETURN(const int32_t size, ScalarInput(c, 1, "size"));
    if (size < 0) {
      return InvalidArgument("TensorListSlice expects size to be non-negative. Got: ", size);
    }
    WEFT_RETURN_IF_ERROR(CheckLength(size));
    TensorList::Elements elements = list->ToElements();
    elements.resize(static_cast<size_t>(size));
    c.SetOutput(0, TensorOf(MakeRef<TensorList>(*list, std::move(elements))));
    return absl::OkStatus();
  }
};

class ElementShapeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> list, TensorListOf(c.input(0)));
    const PartialShape& shape = list->element_shape();
    const Shape wanted = shape.known_rank() ? Shape{shape.rank()} : Shape();
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, wanted));
    if (shape.known_rank()) return StoreIndices(shape.dims(), out);
    return StoreIndices({-1}, out);
  }
};

Status ReserveShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 0).status());
  return shapes::Scalar(c);
}

// What `element_shape`, if it is a constant, says.
Status ItemShape(ShapeContext& c) {
  if (c.constant(2) == nullptr) return shapes::Unknown(c);
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, ElementShapeOf(*c.constant(2)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status GetItemGradient(GradientContext& c) {
  const Endpoint shape =
      c.Op("TensorListElementShape", {c.input(0)}, {{"shape_type", DType::kInt32}});
  const Endpoint length = c.Op("TensorListLength", {c.input(0)});
  const DType dtype = c.node().output_type(0).dtype;
  const Endpoint empty = c.Op("TensorListReserve", {shape, length}, {{"element_dtype", dtype}});
  c.set_input(0, c.Op("TensorListSetItem", {empty, c.input(1), c.gradient()}));
  return absl::OkStatus();
}

Status SetItemGradient(GradientContext& c) {
  const Endpoint item = c.input(2);
  c.set_input(0, c.Op("TensorListSetItem", {c.gradient(), c.input(1), c.Op("ZerosLike", {item})}));
  c.set_input(2, c.Op("TensorListGetItem", {c.gradient(), c.input(1), c.Op("Shape", {item})},
                      {{"element_dtype", c.node().input_type(2).dtype}}));
  return absl::OkStatus();
}

Status ResizeGradient(GradientContext& c) {
  c.set_input(0, c.Op("TensorListResize", {c.gradient(), c.Op("TensorListLength", {c.input(0)})}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("TensorListReserve")
                    .Doc("Returns a list of `num_elements` elements that nobody set yet: they read "
                         "as zeros.\nInvalidArgument if `num_elements` is negative.")
                    .Input("element_shape: shape_type")
                    .Input("num_elements: int32")
                    .Output("handle: variant")
                    .Attr("element_dtype: type")
                    .Attr("shape_type: {int32, int64}")
                    .Shape(ReserveShape)
                    .NoGradient()
                    .Kernel(MakeKernel<ReserveKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("TensorListGetItem")
                    .Doc("Returns element `index` of the list; zeros of the shape `element_shape` "
                         "if nobody set it.\nInvalidArgument if the list is not as long.")
                    .Input("input_handle: variant")
                    .Input("index: int32")
                    .Input("element_shape: Tshape")
                    .Output("item: element_dtype")
                    .Attr("element_dtype: type")
                    .Attr("Tshape: {int32, int64} = DT_INT32")
                    .Shape(ItemShape)
                    .Gradient(GetItemGradient)
                    .Kernel(MakeKernel<GetItemKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("TensorListSetItem")
                    .Doc("Returns the list with `item` as its element `index`.\n"
                         "A list that is not as long becomes so if "
                         "`resize_if_index_out_of_bounds`; else that is InvalidArgument.")
                    .Input("input_handle: variant")
                    .Input("index: int32")
                    .Input("item: element_dtype")
                    .Output("output_handle: variant")
                    .Attr("element_dtype: type")
                    .Attr("resize_if_index_out_of_bounds: bool = false")
                    .Shape(shapes::Scalar)
                    .Gradient(SetItemGradient)
                    .Kernel(MakeKernel<SetItemKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("TensorListResize")
          .Doc("Returns the list cut to `size` elements, or with elements that nobody set "
               "behind it.\nInvalidArgument if `size` is negative.")
          .Input("input_handle: variant")
          .Input("size: int32")
          .Output("output_handle: variant")
          .Shape(shapes::Scalar)
          .Gradient(ResizeGradient)
          .Kernel(MakeKernel<ResizeKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("TensorListElementShape")
                    .Doc("The shape that elements of the list have, -1 for sizes that are not "
                         "known; the scalar -1 if nothing is.")
                    .Input("input_handle: variant")
                    .Output("element_shape: shape_type")
                    .Attr("shape_type: {int32, int64}")
                    .Shape(shapes::Unknown)
                    .NoGradient()
                    .Kernel(MakeKernel<ElementShapeKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::control::tensor_list_items
