// SPDX-License-Identifier: Apache-2.0
// Lists of tensors made of the rows of one tensor, and tensors made of lists.
#include <algorithm>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/kernel/scratch.h"
#include "weft/ops/control/tensor_list_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/gradients.h"
#include "weft/ops/index_values.h"

namespace weft::ops::control::tensor_list_stack {
namespace {

// The elements of the list at the places `indices`, one behind the other, each of shape `each`.
Status WriteStacked(const TensorList& list, absl::Span<const int32_t> indices, const Shape& each,
                    Tensor* out) {
  const TensorList::Elements elements = list.ToElements();
  const int64_t size = each.num_elements();
  for (size_t k = 0; k < indices.size(); ++k) {
    const Tensor& element = elements[static_cast<size_t>(indices[k])];
    const int64_t at = static_cast<int64_t>(k) * size;
    if (!element.IsInitialized()) {
      ClearElements(out, at, size);
    } else if (element.shape() == each) {
      CopyElements(element, 0, size, out, at);
    } else {
      return InvalidArgument("Tried to stack list elements that differ in shape: ", each.ToString(),
                             " and ", element.shape().ToString());
    }
  }
  return absl::OkStatus();
}

Shape Stacked(int64_t count, Shape each) {
  each.InsertDim(0, count);
  return each;
}

class StackKernel final : public OpKernel {
 public:
  explicit StackKernel(KernelConstruction& c) : expected_(c.AttrOr<int64_t>("num_elements", -1)) {}
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> list, TensorListOfInput(c, 0, c.output_dtype(0)));
    if (expected_ >= 0 && list->length() != expected_) {
      return InvalidArgument("Operation expected a list with ", expected_,
                             " elements but got a list with ", list->length(), " elements.");
    }
    WEFT_ASSIGN_OR_RETURN(const PartialShape wanted, ElementShapeOf(c.input(1)));
    WEFT_ASSIGN_OR_RETURN(const Shape each, CommonShape(*list, wanted));
    WEFT_RETURN_IF_ERROR(MultiplySizes(each.num_elements(), list->length()).status());
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Stacked(list->length(), each)));
    std::vector<int32_t> all(static_cast<size_t>(list->length()));
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int32_t>(i);
    return WriteStacked(*list, all, each, out);
  }

 private:
  const int64_t expected_;
};

class GatherKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> list, TensorListOfInput(c, 0, c.output_dtype(0)));
    const Tensor& indices = c.input(1);
    if (!indices.shape().IsVector()) {
      return InvalidArgument("indices must be a vector, got shape ", indices.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const PartialShape wanted, ElementShapeOf(c.input(2)));
    for (const int32_t index : indices.span<int32_t>()) {
      if (index >= 0 && index < list->length()) continue;
      return InvalidArgument("Trying to gather element ", index, " from a list of size ",
                             list->length(), ".");
    }
    // Of the elements, only those that are gathered tell their shape.
    TensorList::Elements gathered;
    for (const int32_t index : indices.span<int32_t>()) gathered.push_back(list->at(index));
    WEFT_ASSIGN_OR_RETURN(const Shape each,
                          CommonShape(TensorList(*list, std::move(gathered)), wanted));
    WEFT_RETURN_IF_ERROR(MultiplySizes(each.num_elements(), indices.dim(0)).status());
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Stacked(indices.dim(0), each)));
    return WriteStacked(*list, indices.span<int32_t>(), each, out);
  }
};

// Row `i` of a tensor as an element of its own.
StatusOr<Tensor> RowOf(const Tensor& tensor, int64_t i) {
  Shape shape = tensor.shape();
  shape.RemoveDim(0);
  return tensor.SliceRows(i, i + 1).Reshaped(shape);
}

// InvalidArgument unless rows of `tensor` can be elements of this shape.
Status CheckRows(const Tensor& tensor, const PartialShape& each) {
  if (tensor.rank() < 1) {
    return InvalidArgument("Tensor must be at least a vector, but saw shape: ",
                           tensor.shape().ToString());
  }
  Shape row = tensor.shape();
  row.RemoveDim(0);
  if (each.IsCompatibleWith(row)) return absl::OkStatus();
  return InvalidArgument("Specified a list with shape ", each.ToString(),
                         " from a tensor with shape ", row.ToString());
}

class FromTensorKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& tensor = c.input(0);
    WEFT_ASSIGN_OR_RETURN(PartialShape each, ElementShapeOf(c.input(1)));
    WEFT_RETURN_IF_ERROR(CheckRows(tensor, each));
    TensorList::Elements rows(static_cast<size_t>(tensor.dim(0)));
    for (size_t i = 0; i < rows.size(); ++i) {
      WEFT_ASSIGN_OR_RETURN(rows[i], RowOf(tensor, static_cast<int64_t>(i)));
    }
    const TensorList like(tensor.dtype(), std::move(each), -1);
    c.SetOutput(0, TensorOf(MakeRef<TensorList>(like, std::move(rows))));
    return absl::OkStatus();
  }
};

// Puts row k of the tensor at indices[k], into `elements`, which become `least` or as many as
// needed. ResourceExhausted where memory would not hold their places.
Status ScatterRows(const Tensor& tensor, const Tensor& indices, int64_t least,
                   TensorList::Elements* elements) {
  int64_t length = std::max(least, static_cast<int64_t>(elements->size()));
  for (const int32_t index : indices.span<int32_t>()) length = std::max(length, int64_t{index} + 1);
  WEFT_RETURN_IF_ERROR(CheckRoomFor(length, sizeof(Tensor), "elements of a list"));
  elements->resize(static_cast<size_t>(length));
  for (int64_t k = 0; k < indices.dim(0); ++k) {
    const auto at = static_cast<size_t>(indices.data<int32_t>()[k]);
    WEFT_ASSIGN_OR_RETURN((*elements)[at], RowOf(tensor, k));
  }
  return absl::OkStatus();
}

// InvalidArgument unless there is one index for each row and none is negative.
Status CheckIndices(const Tensor& tensor, const Tensor& indices) {
  if (!indices.shape().IsVector()) {
    return InvalidArgument("indices must be a vector, got shape ", indices.shape().ToString());
  }
  if (tensor.dim(0) != indices.dim(0)) {
    return InvalidArgument("Invalid number of rows in input tensor. Expected: ", indices.dim(0),
                           " Actual: ", tensor.dim(0));
  }
  for (const int32_t index : indices.span<int32_t>()) {
    if (index >= 0) continue;
    return InvalidArgument("Indices in TensorListScatter must all be non-negative, not ", index);
  }
  return absl::OkStatus();
}

// TensorListScatter grows the list to its highest index; with num_elements, it has that many or, if
// -1, as many as needed.
class ScatterKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &tensor = c.input(0), &indices = c.input(1);
    WEFT_ASSIGN_OR_RETURN(PartialShape each, ElementShapeOf(c.input(2)));
    int32_t length = -1;
    if (c.num_inputs() > 3) {
      if (!c.input(3).shape().IsScalar()) {
        return InvalidArgument("num_elements must be a scalar, got shape ",
                               c.input(3).shape().ToString());
      }
      length = c.input(3).scalar<int32_t>();
      if (length < -1) {
        return InvalidArgument("TensorListScatter expects num_elements >= -1, found: ", length);
      }
    }
    WEFT_RETURN_IF_ERROR(CheckRows(tensor, each));
    WEFT_RETURN_IF_ERROR(CheckIndices(tensor, indices));
    for (const int32_t index : indices.span<int32_t>()) {
      if (length < 0 || index < length) continue;
      return InvalidArgument("TensorListScatter: Trying to scatter at index ", index,
                             " in list with size ", length);
    }
    TensorList::Elements elements;
    WEFT_RETURN_IF_ERROR(ScatterRows(tensor, indices, length, &elements));
    const TensorList like(tensor.dtype(), std::move(each), -1);
    c.SetOutput(0, TensorOf(MakeRef<TensorList>(like, std::move(elements))));
    return absl::OkStatus();
  }
};

class ScatterIntoListKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &tensor = c.input(1), &indices = c.input(2);
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> list, TensorListOfInput(c, 0, tensor.dtype()));
    WEFT_RETURN_IF_ERROR(CheckRows(tensor, list->element_shape()));
    WEFT_RETURN_IF_ERROR(CheckIndices(tensor, indices));
    TensorList::Elements elements = list->ToElements();
    WEFT_RETURN_IF_ERROR(ScatterRows(tensor, indices, 0, &elements));
    c.SetOutput(0, TensorOf(MakeRef<TensorList>(*list, std::move(elements))));
    return absl::OkStatus();
  }
};

// The shape of `count` elements (-1: not known) that input `i` describes.
Status RowsShape(ShapeContext& c, int i, int64_t count) {
  if (c.constant(i) == nullptr) return shapes::Unknown(c);
  WEFT_ASSIGN_OR_RETURN(const PartialShape each, ElementShapeOf(*c.constant(i)));
  if (!each.known_rank()) return shapes::Unknown(c);
  PartialShape rows({count});
  for (const int64_t size : each.dims()) rows.AddDim(size);
  c.set_output(0, std::move(rows));
  return absl::OkStatus();
}

// The shape of the rows of `tensor`, as a tensor.
Endpoint RowShape(GradientContext& c, Endpoint tensor) {
  GraphBuilder& b = c.builder();
  const Endpoint one = b.Constant(Tensor::Vector<int32_t>({1}));
  const Endpoint all = b.Constant(Tensor::Vector<int32_t>({-1}));
  return c.Op("Slice", {c.Op("Shape", {tensor}), one, all});
}

Status StackGradient(GradientContext& c) {
  c.set_input(0, c.Op("TensorListFromTensor", {c.gradient(), RowShape(c, c.gradient())}));
  return absl::OkStatus();
}

Status FromTensorGradient(GradientContext& c) {
  const PartialShape shape = c.builder().ShapeOf(c.input(0));
  const int64_t count = shape.known_rank() && shape.rank() > 0 ? shape.dim(0) : -1;
  c.set_input(0, c.Op("TensorListStack", {c.gradient(), RowShape(c, c.input(0))},
                      {{"element_dtype", c.node().input_type(0).dtype}, {"num_elements", count}}));
  return absl::OkStatus();
}

Status GatherGradient(GradientContext& c) {
  const Endpoint length = c.Op("TensorListLength", {c.input(0)});
  const Endpoint each =
      c.Op("TensorListElementShape", {c.input(0)}, {{"shape_type", DType::kInt32}});
  c.set_input(0, c.Op("TensorListScatterV2", {c.gradient(), c.input(1), each, length}));
  return absl::OkStatus();
}

Endpoint Gathered(GradientContext& c, Endpoint tensor, Endpoint indices) {
  return c.Op("TensorListGather", {c.gradient(), indices, RowShape(c, tensor)},
              {{"element_dtype", TypeOf(tensor)}});
}

Status ScatterGradient(GradientContext& c) {
  c.set_input(0, Gathered(c, c.input(0), c.input(1)));
  return absl::OkStatus();
}

Status ScatterIntoListGradient(GradientContext& c) {
  const Endpoint zeros = c.Op("ZerosLike", {c.input(1)});
  c.set_input(0, c.Op("TensorListScatterIntoExistingList", {c.gradient(), zeros, c.input(2)}));
  c.set_input(1, Gathered(c, c.input(1), c.input(2)));
  return absl::OkStatus();
}

void RegisterScatters(Catalogue& catalogue) {
  OpSpec scatter("TensorListScatter"), sized("TensorListScatterV2");
  scatter.Doc(
      "Returns a list with row k of `tensor` as element indices[k].\n"
      "It is as long as the highest index asks; what no index names nobody set.");
  sized.Doc(
      "Returns a list of `num_elements` elements with row k of `tensor` as element indices[k].\n"
      "What no index names nobody set; -1 as num_elements means as long as the indices ask.");
  for (OpSpec* spec : {&scatter, &sized}) {
    spec->Input("tensor: element_dtype").Input("indices: int32").Input("element_shape: shape_type");
  }
  sized.Input("num_elements: int32");
  for (OpSpec* spec : {&scatter, &sized}) {
    spec->Output("output_handle: variant")
        .Attr("element_dtype: type")
        .Attr("shape_type: {int32, int64}")
        .Shape(shapes::Scalar)
        .Gradient(ScatterGradient)
        .Kernel(MakeKernel<ScatterKernel>());
    catalogue.Add(std::move(*spec));
  }
  catalogue.Add(OpSpec("TensorListScatterIntoExistingList")
                    .Doc("Returns the list with row k of `tensor` as its element indices[k].\n"
                         "The list becomes as long as the highest index asks.")
                    .Input("input_handle: variant")
                    .Input("tensor: element_dtype")
                    .Input("indices: int32")
                    .Output("output_handle: variant")
                    .Attr("element_dtype: type")
                    .Shape(shapes::Scalar)
                    .Gradient(ScatterIntoListGradient)
                    .Kernel(MakeKernel<ScatterIntoListKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("TensorListStack")
                    .Doc("All elements of the list as the rows of one tensor.\n"
                         "Elements that nobody set become zeros. InvalidArgument if shapes differ, "
                         "or if they are known neither from `element_shape` nor from an element.")
                    .Input("input_handle: variant")
                    .Input("element_shape: int32")
                    .Output("tensor: element_dtype")
                    .Attr("element_dtype: type")
                    .Attr("num_elements: int = -1")
                    .Shape([](ShapeContext& c) -> Status {
                      WEFT_ASSIGN_OR_RETURN(const int64_t count, c.Attr<int64_t>("num_elements"));
                      return RowsShape(c, 1, std::max<int64_t>(-1, count));
                    })
                    .Gradient(StackGradient)
                    .Kernel(MakeKernel<StackKernel>()));
  catalogue.Add(OpSpec("TensorListGather")
                    .Doc("Elements indices[0], indices[1] and so on as the rows of one tensor.")
                    .Input("input_handle: variant")
                    .Input("indices: int32")
                    .Input("element_shape: int32")
                    .Output("values: element_dtype")
                    .Attr("element_dtype: type")
                    .Shape([](ShapeContext& c) {
                      const PartialShape& indices = c.input(1);
                      return RowsShape(c, 2, indices.rank() == 1 ? indices.dim(0) : -1);
                    })
                    .Gradient(GatherGradient)
                    .Kernel(MakeKernel<GatherKernel>()));
  catalogue.Add(OpSpec("TensorListFromTensor")
                    .Doc("Returns a list whose elements are the rows of `tensor`.\n"
                         "InvalidArgument if they do not have the shape `element_shape`.")
                    .Input("tensor: element_dtype")
                    .Input("element_shape: shape_type")
                    .Output("output_handle: variant")
                    .Attr("element_dtype: type")
                    .Attr("shape_type: {int32, int64}")
                    .Shape(shapes::Scalar)
                    .Gradient(FromTensorGradient)
                    .Kernel(MakeKernel<FromTensorKernel>()));
  RegisterScatters(catalogue);
}

}  // namespace weft::ops::control::tensor_list_stack
