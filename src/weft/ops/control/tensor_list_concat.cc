// SPDX-License-Identifier: Apache-2.0
// Lists whose elements are pieces of one tensor, of various lengths; lists put behind each other,
// and batches of lists.
#include <memory>
#include <utility>

#include "weft/kernel/op_spec.h"
#include "weft/ops/control/tensor_list_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/gradients.h"
#include "weft/ops/index_values.h"

namespace weft::ops::control::tensor_list_concat {
namespace {

// `shape` without its first dimension; unknown stays so.
StatusOr<PartialShape> WithoutFirst(const PartialShape& shape) {
  if (!shape.known_rank()) return shape;
  if (shape.rank() < 1) {
    return InvalidArgument("Elements must be at least vectors here, found scalars instead.");
  }
  return PartialShape::Make(shape.dims().subspan(1));
}

// TensorListConcat takes the shape of an element as an attribute, V2 as an input beside the sizes
// of elements that nobody set.
class ConcatKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    if (c.num_inputs() > 1) return std::make_unique<ConcatKernel>(PartialShape());
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("element_shape"));
    return std::make_unique<ConcatKernel>(std::move(shape));
  }
  explicit ConcatKernel(PartialShape shape) : shape_(std::move(shape)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> list, TensorListOfInput(c, 0, c.output_dtype(0)));
    PartialShape each = shape_;
    if (c.num_inputs() > 1) {
      WEFT_ASSIGN_OR_RETURN(each, ElementShapeOf(c.input(1)));
    }
    const TensorList::Elements elements = list->ToElements();
    WEFT_ASSIGN_OR_RETURN(const Shape rest, RestOf(*list, elements, each));
    WEFT_ASSIGN_OR_RETURN(const IndexVector lengths, LengthsOf(c, elements, each));
    WEFT_ASSIGN_OR_RETURN(Tensor * sizes,
                          c.AllocateOutput(1, Shape{static_cast<int64_t>(lengths.size())}));
    std::copy(lengths.begin(), lengths.end(), sizes->data<int64_t>());
    Dims dims = {0};
    for (const int64_t length : lengths) dims[0] += length;
    dims.insert(dims.end(), rest.dims().begin(), rest.dims().end());
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    int64_t at = 0;
    for (size_t i = 0; i < elements.size(); ++i) {
      const int64_t size = lengths[i] * rest.num_elements();
      if (elements[i].IsInitialized()) {
        CopyElements(elements[i], 0, size, out, at);
      } else {
        ClearElements(out, at, size);
      }
      at += size;
    }
    return absl::OkStatus();
  }

 private:
  // The sizes behind the first, which all elements share.
  static StatusOr<Shape> RestOf(const TensorList& list, const TensorList::Elements& elements,
                                const PartialShape& each) {
    WEFT_ASSIGN_OR_RETURN(PartialShape rest, WithoutFirst(each));
    WEFT_ASSIGN_OR_RETURN(const PartialShape said, WithoutFirst(list.element_shape()));
    WEFT_ASSIGN_OR_RETURN(rest, rest.MergeWith(said));
    for (const Tensor& element : elements) {
      if (!element.IsInitialized()) continue;
      WEFT_ASSIGN_OR_RETURN(const PartialShape found, WithoutFirst(element.shape()));
      WEFT_ASSIGN_OR_RETURN(rest, rest.MergeWith(found));
    }
    if (rest.IsFullyDefined()) return rest.ToShape();
    return InvalidArgument(
        "All except the first dimension must be fully defined when no element tells them. "
        "element_shape: ",
        each.ToString());
  }

  static StatusOr<IndexVector> LengthsOf(const KernelContext& c,
                                         const TensorList::Elements& elements,
                                         const PartialShape& each) {
    const int64_t first = each.known_rank() ? each.dim(0) : -1;
    const Tensor* leading = c.num_inputs() > 2 ? &c.input(2) : nullptr;
    IndexVector lengths;
    for (size_t i = 0; i < elements.size(); ++i) {
      int64_t length = first;
      if (elements[i].IsInitialized()) {
        length = elements[i].dim(0);
        if (first >= 0 && length != first) {
          return InvalidArgument("Concat saw a tensor of shape ", elements[i].shape().ToString(),
                                 " at index ", i, " but requested a tensor with leading dim ",
                                 first);
        }
      } else if (first < 0 && leading != nullptr) {
        if (static_cast<int64_t>(i) >= leading->num_elements()) {
          return InvalidArgument("List contains uninitialized element at index ", i,
                                 " but leading_dims has only ", leading->num_elements(),
                                 " elements.");
        }
        length = leading->data<int64_t>()[i];
      }
      if (length < 0) return InvalidArgument("The length of element ", i, " is not known");
      lengths.push_back(length);
    }
    return lengths;
  }

  const PartialShape shape_;
};

class SplitKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &tensor = c.input(0), &lengths = c.input(2);
    WEFT_ASSIGN_OR_RETURN(PartialShape each, ElementShapeOf(c.input(1)));
    if (!lengths.shape().IsVector()) {
      return InvalidArgument("Expected lengths to be a vector, received shape: ",
                             lengths.shape().ToString());
    }
    if (tensor.rank() < 1) {
      return InvalidArgument("Tensor must be at least a vector, but saw shape: ",
                             tensor.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const PartialShape row, WithoutFirst(each));
    if (!row.IsCompatibleWith(WithoutFirst(tensor.shape()).value_or(row))) {
      return InvalidArgument("Specified a list with shape ", each.ToString(),
                             " from a tensor with shape ", tensor.shape().ToString());
    }
    int64_t total = 0;
    TensorList::Elements pieces;
    for (const int64_t length : lengths.span<int64_t>()) {
      if (length < 0) return InvalidArgument("Invalid value in lengths: ", length);
      if (length > tensor.dim(0) - total) {
        return InvalidArgument("Attempting to slice [", total, ", ", total + length,
                               "] from tensor with length ", tensor.dim(0));
      }
      pieces.push_back(tensor.SliceRows(total, total + length));
      total += length;
    }
    if (total != tensor.dim(0)) {
      return InvalidArgument("Unused values in tensor. Length of tensor: ", tensor.dim(0),
                             " Values used: ", total);
    }
    const TensorList like(tensor.dtype(), std::move(each), -1);
    c.SetOutput(0, TensorOf(MakeRef<TensorList>(like, std::move(pieces))));
    return absl::OkStatus();
  }
};

class ConcatListsKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const DType dtype, c.Attr<DType>("element_dtype"));
    return std::make_unique<ConcatListsKernel>(dtype);
  }
  explicit ConcatListsKernel(DType dtype) : dtype_(dtype) {}

  Status Compute(KernelContext& c) override {
    const Tensor a = c.input(0), b = c.input(1);
    if (a.shape() != b.shape()) {
      return InvalidArgument("Incompatible input TensorList tensor shapes: ", a.shape().ToString(),
                             " vs. ", b.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, a.shape()));
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> first, TensorListOf(a.data<Variant>()[i]));
      WEFT_ASSIGN_OR_RETURN(const Ref<TensorList> second, TensorListOf(b.data<Variant>()[i]));
      if (first->dtype() != dtype_ || second->dtype() != dtype_) {
        return InvalidArgument("Op expected lists of ", DTypeName(dtype_), " but got lists of ",
                               DTypeName(first->dtype()), " and ", DTypeName(second->dtype()));
      }
      if (!(first->element_shape() == second->element_shape())) {
        return InvalidArgument("input_a and input_b TensorList element shapes are not identical: ",
                               first->element_shape().ToString(), " vs. ",
                               second->element_shape().ToString());
      }
      TensorList::Elements all = first->ToElements(), more = second->ToElements();
      all.insert(all.end(), more.begin(), more.end());
      out->data<Variant>()[i].value = MakeRef<TensorList>(*first, std::move(all));
    }
    return absl::OkStatus();
  }

 private:
  const DType dtype_;
};

class PushBackBatchKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor lists = c.input(0), rows = c.input(1);
    if (!lists.shape().IsVector() || rows.rank() < 1 || lists.dim(0) != rows.dim(0)) {
      return InvalidArgument(
          "Expected a vector of lists and a tensor with a row for each, got shapes ",
          lists.shape().ToString(), " and ", rows.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, lists.shape()));
    Shape each = rows.shape();
    each.RemoveDim(0);
    for (int64_t i = 0; i < lists.dim(0); ++i) {
      WEFT_ASSIGN_OR_RETURN(Ref<TensorList> list, TensorListOf(lists.data<Variant>()[i]));
      WEFT_ASSIGN_OR_RETURN(Tensor row, rows.SliceRows(i, i + 1).Reshaped(each));
      WEFT_RETURN_IF_ERROR(CheckElement(*list, row));
      out->data<Variant>()[i].value = MakeRef<TensorList>(std::move(list), std::move(row));
    }
    return absl::OkStatus();
  }
};

Status ConcatShape(ShapeContext& c) {
  PartialShape each;
  if (c.num_inputs() == 1) {
    WEFT_ASSIGN_OR_RETURN(each, c.Attr<PartialShape>("element_shape"));
  } else if (c.constant(1) != nullptr) {
    WEFT_ASSIGN_OR_RETURN(each, ElementShapeOf(*c.constant(1)));
  }
  if (each.known_rank() && each.rank() > 0) {
    each.SetDim(0, -1);
    c.set_output(0, std::move(each));
  }
  c.set_output(1, PartialShape({-1}));
  return absl::OkStatus();
}

// The gradient's pieces have the lengths of the input's.
Status ConcatGradient(GradientContext& c) {
  GraphBuilder& b = c.builder();
  const Endpoint any = b.Scalar<int32_t>(-1);
  c.set_input(0, c.Op("TensorListSplit", {c.gradient(), any, c.output(1)}));
  return absl::OkStatus();
}

Status SplitGradient(GradientContext& c) {
  GraphBuilder& b = c.builder();
  const Endpoint unknown = b.Constant(Tensor::Vector<int32_t>({-1}));
  const Endpoint one = b.Constant(Tensor::Vector<int32_t>({1}));
  const Endpoint rest = c.Op("Slice", {c.Op("Shape", {c.input(0)}), one, unknown});
  const Endpoint each =
      c.Op("ConcatV2", {std::vector<Endpoint>{unknown, rest}, b.Scalar<int32_t>(0)});
  c.set_input(0, c.Op("TensorListConcatV2", {c.gradient(), each, c.input(2)},
                      {{"element_dtype", TypeOf(c.input(0))}}));
  return absl::OkStatus();
}

void RegisterConcats(Catalogue& catalogue) {
  OpSpec concat("TensorListConcat"), sized("TensorListConcatV2");
  concat.Doc("The elements of the list behind each other, and how many rows each has.");
  sized.Doc(
      "The elements of the list behind each other, and how many rows each has.\n"
      "`leading_dims` says it of elements that nobody set, where `element_shape` does not.");
  concat.Input("input_handle: variant");
  sized.Input("input_handle: variant")
      .Input("element_shape: shape_type")
      .Input("leading_dims: int64");
  for (OpSpec* spec : {&concat, &sized}) {
    spec->Output("tensor: element_dtype").Output("lengths: int64").Attr("element_dtype: type");
  }
  concat.Attr("element_shape: shape = unknown");
  sized.Attr("shape_type: {int32, int64}");
  for (OpSpec* spec : {&concat, &sized}) {
    spec->Shape(ConcatShape).Gradient(ConcatGradient).Kernel(MakeKernel<ConcatKernel>());
    catalogue.Add(std::move(*spec));
  }
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterConcats(catalogue);
  catalogue.Add(OpSpec("TensorListSplit")
                    .Doc("Returns a list of pieces of `tensor`, the first lengths[0] rows and so "
                         "on.\nInvalidArgument if the lengths do not add up to its rows.")
                    .Input("tensor: element_dtype")
                    .Input("element_shape: shape_type")
                    .Input("lengths: int64")
                    .Output("output_handle: variant")
                    .Attr("element_dtype: type")
                    .Attr("shape_type: {int32, int64}")
                    .Shape(shapes::Scalar)
                    .Gradient(SplitGradient)
                    .Kernel(MakeKernel<SplitKernel>()));
  catalogue.Add(OpSpec("TensorListConcatLists")
                    .Doc("Returns lists with the elements of `input_b` behind those of `input_a`.")
                    .Input("input_a: variant")
                    .Input("input_b: variant")
                    .Output("output: variant")
                    .Attr("element_dtype: type")
                    .Shape(shapes::MergeInputs)
                    .NoGradient()
                    .Kernel(MakeKernel<ConcatListsKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("TensorListPushBackBatch")
                    .Doc("Returns each list with its row of `tensor` behind its elements.")
                    .Input("input_handles: variant")
                    .Input("tensor: element_dtype")
                    .Output("output_handles: variant")
                    .Attr("element_dtype: type")
                    .Shape(shapes::SameAsInput)
                    .NoGradient()
                    .Kernel(MakeKernel<PushBackBatchKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::control::tensor_list_concat
