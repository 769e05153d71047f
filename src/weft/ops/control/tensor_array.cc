// SPDX-License-Identifier: Apache-2.0
// Arrays of tensors that loops fill and read, as map_fn, scan and dynamic_rnn do.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/control/step_resource_kernel.h"
#include "weft/ops/control/tensor_array_kernel.h"
#include "weft/ops/elements.h"

namespace weft::ops::control::tensor_array {
namespace {

StatusOr<Ref<TensorArray>> ArrayOf(const KernelContext& c, DType dtype) {
  WEFT_ASSIGN_OR_RETURN(Ref<TensorArray> array, StepResourceOfInput<TensorArray>(c));
  if (array->dtype() == dtype) return array;
  return InvalidArgument("TensorArray dtype is ", DTypeName(array->dtype()), " but op has dtype ",
                         DTypeName(dtype));
}

StatusOr<int64_t> IndexOfInput(const KernelContext& c, int i, const char* what) {
  if (c.input(i).shape().IsScalar()) return c.input(i).scalar<int32_t>();
  return InvalidArgument("TensorArray ", what,
                         " must be scalar, but had shape: ", c.input(i).shape().ToString());
}

// `row` joined in front of `rest`.
StatusOr<Shape> Prepend(int64_t rows, absl::Span<const int64_t> rest) {
  Dims sizes{rows};
  sizes.insert(sizes.end(), rest.begin(), rest.end());
  return Shape::Make(sizes);
}

class CreateKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    TensorArray::Options options;
    WEFT_ASSIGN_OR_RETURN(options.dtype, c.Attr<DType>("dtype"));
    WEFT_ASSIGN_OR_RETURN(options.element_shape, c.Attr<PartialShape>("element_shape"));
    WEFT_ASSIGN_OR_RETURN(options.dynamic_size, c.Attr<bool>("dynamic_size"));
    WEFT_ASSIGN_OR_RETURN(options.clear_after_read, c.Attr<bool>("clear_after_read"));
    WEFT_ASSIGN_OR_RETURN(options.identical_element_shapes,
                          c.Attr<bool>("identical_element_shapes"));
    std::string name = c.AttrOr<std::string>("tensor_array_name", "");
    return std::make_unique<CreateKernel>(name.empty() ? c.name() : std::move(name),
                                          std::move(options));
  }
  CreateKernel(std::string name, TensorArray::Options options)
      : name_(std::move(name)), options_(std::move(options)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const int64_t size, IndexOfInput(c, 0, "size"));
    if (size < 0) return InvalidArgument("Size should be >= 0, got ", size);
    const std::string name = UniqueStepName(name_);
    const auto make = [&]() -> StatusOr<Ref<TensorArray>> {
      return MakeRef<TensorArray>(name, options_, size);
    };
    WEFT_RETURN_IF_ERROR(GiveStepResource<TensorArray>(c, name, "TensorArray", make));
    c.SetOutput(1, Tensor::Scalar(0.0f));
    return absl::OkStatus();
  }

 private:
  const std::string name_;
  const TensorArray::Options options_;
};

// TensorArrayGradV3, and TensorArrayGradWithShape, whose elements get more dimensions in front.
class GradientKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(std::string source, c.Attr<std::string>("source"));
    return std::make_unique<GradientKernel>(std::move(source));
  }
  explicit GradientKernel(std::string source) : source_(std::move(source)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<TensorArray> array, StepResourceOfInput<TensorArray>(c));
    Shape prefix;
    if (c.num_inputs() > 2) {
      if (c.input(2).rank() > 1) return InvalidArgument("shape_to_prepend must be a vector");
      const absl::Span<const int32_t> sizes = c.input(2).span<int32_t>();
      WEFT_ASSIGN_OR_RETURN(prefix, Shape::Make(Dims(sizes.begin(), sizes.end())));
    }
    const std::string name = absl::StrCat(array->name(), "@", source_);
    WEFT_RETURN_IF_ERROR(GiveStepResource<TensorArray>(
        c, name, "TensorArray", [&] { return array->MakeGradient(name, prefix); }));
    c.SetOutput(1, c.input(1));
    return absl::OkStatus();
  }

 private:
  const std::string source_;
};

class WriteKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const int64_t index, IndexOfInput(c, 1, "index"));
    WEFT_ASSIGN_OR_RETURN(Ref<TensorArray> array, ArrayOf(c, c.input(2).dtype()));
    WEFT_RETURN_IF_ERROR(array->Write(index, c.input(2)));
    c.SetOutput(0, c.input(3));
    return absl::OkStatus();
  }
};

class ReadKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(const int64_t index, IndexOfInput(c, 1, "index"));
    WEFT_ASSIGN_OR_RETURN(Ref<TensorArray> array, ArrayOf(c, c.output_dtype(0)));
    WEFT_ASSIGN_OR_RETURN(Tensor value, array->Read(index));
    c.SetOutput(0, std::move(value));
    return absl::OkStatus();
  }
};

class GatherKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("element_shape"));
    return std::make_unique<GatherKernel>(std::move(shape));
  }
  explicit GatherKernel(PartialShape shape) : element_shape_(std::move(shape)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& indices = c.input(1);
    if (indices.rank() != 1) {
      return InvalidArgument("Expected indices to be a vector, but received shape: ",
                             indices.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Ref<TensorArray> array, ArrayOf(c, c.output_dtype(0)));
    WEFT_ASSIGN_OR_RETURN(const PartialShape known, array->MergeElementShape(element_shape_));
    const int64_t count = indices.num_elements();
    if (count == 0) return GiveNothing(c, known);
    WEFT_RETURN_IF_ERROR(array->CheckRoom(count));
    std::vector<Tensor> elements;
    for (const int32_t index : indices.span<int32_t>()) {
      WEFT_ASSIGN_OR_RETURN(Tensor element, array->Read(index));
      elements.push_back(std::move(element));
      if (elements.back().shape() == elements.front().shape()) continue;
      return InvalidArgument(
          "TensorArray ", array->name(),
          " has inconsistent shapes.  Index 0 has shape: ", elements.front().shape().ToString(),
          " but index ", elements.size() - 1, " has shape: ", elements.back().shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Prepend(count, elements[0].shape().dims()));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    const int64_t size = elements[0].num_elements();
    for (int64_t i = 0; i < count; ++i) {
      CopyElements(elements[static_cast<size_t>(i)], 0, size, output, i * size);
    }
    return absl::OkStatus();
  }

 private:
  static Status GiveNothing(KernelContext& c, const PartialShape& known) {
    if (!known.IsFullyDefined()) {
      return Unimplemented("TensorArray has size zero, but element shape ", known.ToString(),
                           " is not fully defined");
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Prepend(0, known.dims()));
    return c.AllocateOutput(0, shape).status();
  }

  const PartialShape element_shape_;
};

// Writes rows [at, at + rows) of `value` as element `index`, without their first dimension if it
// is one row.
Status WriteRows(TensorArray& array, int64_t index, const Tensor& value, int64_t at, int64_t rows,
                 bool keep_first) {
  Dims sizes(value.shape().dims().begin() + 1, value.shape().dims().end());
  if (keep_first) sizes.insert(sizes.begin(), rows);
  WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
  WEFT_ASSIGN_OR_RETURN(Tensor element, Tensor::Allocate(value.dtype(), shape));
  const int64_t row = value.num_elements() / std::max<int64_t>(1, value.dim(0));
  CopyElements(value, at * row, rows * row, &element, 0);
  return array.Write(index, element);
}

class ScatterKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &indices = c.input(1), &value = c.input(2);
    if (indices.rank() != 1) {
      return InvalidArgument("Expected indices to be a vector, but received shape: ",
                             indices.shape().ToString());
    }
    if (value.rank() < 1) {
      return InvalidArgument("Input value for unpack must be at least a vector but received ",
                             value.shape().ToString());
    }
    if (value.dim(0) != indices.num_elements()) {
      return InvalidArgument("Expected len(indices) == values.shape[0], but saw: ",
                             indices.num_elements(), " vs. ", value.dim(0));
    }
    WEFT_ASSIGN_OR_RETURN(Ref<TensorArray> array, ArrayOf(c, value.dtype()));
    int32_t last = -1;
    for (const int32_t index : indices.span<int32_t>()) last = std::max(last, index);
    WEFT_ASSIGN_OR_RETURN(const int64_t size, array->SizeToWrite(last + int64_t{1}));
    if (last >= size) {
      return InvalidArgument("Max scatter index must be < array size (", last, " vs. ", size, ")");
    }
    WEFT_RETURN_IF_ERROR(array->CheckRoom(value.dim(0)));
    for (int64_t i = 0; i < value.dim(0); ++i) {
      WEFT_RETURN_IF_ERROR(WriteRows(*array, indices.data<int32_t>()[i], value, i, 1, false));
    }
    c.SetOutput(0, c.input(3));
    return absl::OkStatus();
  }
};

class ConcatKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.Attr<PartialShape>("element_shape_except0"));
    return std::make_unique<ConcatKernel>(std::move(shape));
  }
  explicit ConcatKernel(PartialShape shape) : element_shape_except0_(std::move(shape)) {}

  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<TensorArray> array, ArrayOf(c, c.output_dtype(0)));
    WEFT_ASSIGN_OR_RETURN(const int64_t count, array->size());
    WEFT_RETURN_IF_ERROR(array->CheckRoom(count));
    WEFT_ASSIGN_OR_RETURN(Tensor * lengths, c.AllocateOutput(1, Shape{count}));
    Shape rest;
    int64_t rows = 0;
    std::vector<Tensor> elements;
    for (int64_t i = 0; i < count; ++i) {
      WEFT_ASSIGN_OR_RETURN(Tensor element, array->Read(i));
      if (element.rank() < 1) {
        return InvalidArgument("Concat saw a scalar shape at index ", i,
                               " but requires at least vectors.");
      }
      WEFT_ASSIGN_OR_RETURN(const Shape its, Shape::Make(element.shape().dims().subspan(1)));
      if (i == 0) rest = its;
      if (its != rest) {
        return InvalidArgument(
            "TensorArray has inconsistent shapes.  Index 0 has (excepting "
            "dimension 0) shape: ",
            rest.ToString(), " but index ", i,
            " has (excepting dimension 0) "
            "shape: ",
            its.ToString());
      }
      lengths->data<int64_t>()[i] = element.dim(0);
      rows += element.dim(0);
      elements.push_back(std::move(element));
    }
    if (count == 0) {
      if (!element_shape_except0_.IsFullyDefined()) {
        return Unimplemented("TensorArray has size zero, but element_shape_except0 ",
                             element_shape_except0_.ToString(), " is not fully defined");
      }
      WEFT_ASSIGN_OR_RETURN(rest, element_shape_except0_.ToShape());
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Prepend(rows, rest.dims()));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    int64_t at = 0;
    for (const Tensor& element : elements) {
      CopyElements(element, 0, element.num_elements(), output, at);
      at += element.num_elements();
    }
    return absl::OkStatus();
  }

 private:
  const PartialShape element_shape_except0_;
};

class SplitKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor &value = c.input(1), &lengths = c.input(2);
    if (lengths.rank() != 1) {
      return InvalidArgument("Expected lengths to be a vector, received shape: ",
                             lengths.shape().ToString());
    }
    if (value.rank() < 1) {
      return InvalidArgument("Expected value to be at least a vector, but received shape: ",
                             value.shape().ToString());
    }
    int64_t total = 0;
    for (const int64_t length : lengths.span<int64_t>()) {
      if (length < 0 || length > value.dim(0) - total) total = value.dim(0) + 1;
      if (total > value.dim(0)) break;
      total += length;
    }
    if (total != value.dim(0)) {
      return InvalidArgument(
          "Expected sum of lengths to be equal to values.shape[0], but lengths "
          "are ",
          lengths.ToString(), " and value's shape is: ", value.shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(Ref<TensorArray> array, ArrayOf(c, value.dtype()));
    const int64_t count = lengths.num_elements();
    WEFT_ASSIGN_OR_RETURN(const int64_t size, array->SizeToWrite(count));
    if (size != count) {
      return InvalidArgument("TensorArray's size is not equal to the size of lengths (", size,
                             " vs. ", count,
                             "), and the TensorArray is not marked as dynamically resizeable");
    }
    WEFT_RETURN_IF_ERROR(array->CheckRoom(count));
    int64_t at = 0;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t length = lengths.data<int64_t>()[i];
      WEFT_RETURN_IF_ERROR(WriteRows(*array, i, value, at, length, true));
      at += length;
    }
    c.SetOutput(0, c.input(3));
    return absl::OkStatus();
  }
};

class SizeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<TensorArray> array, StepResourceOfInput<TensorArray>(c));
    WEFT_ASSIGN_OR_RETURN(const int64_t size, array->size());
    c.SetOutput(0, Tensor::Scalar(static_cast<int32_t>(size)));
    return absl::OkStatus();
  }
};

class CloseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    WEFT_ASSIGN_OR_RETURN(Ref<TensorArray> array, StepResourceOfInput<TensorArray>(c));
    array->CloseForGood();
    return absl::OkStatus();
  }
};

// [indices, element...]
Status GatherShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape element, c.Attr<PartialShape>("element_shape"));
  WEFT_ASSIGN_OR_RETURN(PartialShape indices, c.WithRank(1, 1));
  if (!element.known_rank()) return absl::OkStatus();
  for (const int64_t size : element.dims()) indices.AddDim(size);
  c.set_output(0, indices);
  return absl::OkStatus();
}

Status ConcatShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape rest, c.Attr<PartialShape>("element_shape_except0"));
  c.set_output(1, PartialShape{-1});
  if (!rest.known_rank()) return absl::OkStatus();
  PartialShape all{-1};
  for (const int64_t size : rest.dims()) all.AddDim(size);
  c.set_output(0, all);
  return absl::OkStatus();
}

// The array that the gradients of the node's array add up in, and the flow that orders its use.
struct GradientArray {
  Endpoint handle;
  Endpoint flow;
};
GradientArray GradientsOf(const GradientContext& c, Endpoint flow) {
  Node* node =
      c.builder().AddNode("TensorArrayGradV3", {c.input(0), flow}, {{"source", c.source()}});
  if (node == nullptr) return {};
  return {{node, 0}, {node, 1}};
}

// Gradients that are differentiated again were put where the flow comes from.
Status GradientArrayGradient(GradientContext& c) {
  if (c.gradient(1)) c.set_input(1, c.gradient(1));
  return absl::OkStatus();
}

// dL/d(element) is put where the element was read from, and the flow goes on from there.
Status ReadGradient(GradientContext& c) {
  const GradientArray g = GradientsOf(c, c.input(2));
  c.set_input(2, c.Op("TensorArrayWriteV3", {g.handle, c.input(1), c.gradient(), g.flow}));
  return absl::OkStatus();
}

Status WriteGradient(GradientContext& c) {
  const GradientArray g = GradientsOf(c, c.gradient());
  c.set_input(2, c.Op("TensorArrayReadV3", {g.handle, c.input(1), g.flow},
                      {{"dtype", c.node().input_type(2).dtype}}));
  c.set_input(3, c.gradient());
  return absl::OkStatus();
}

Status GatherGradient(GradientContext& c) {
  const GradientArray g = GradientsOf(c, c.input(2));
  c.set_input(2, c.Op("TensorArrayScatterV3", {g.handle, c.input(1), c.gradient(), g.flow}));
  return absl::OkStatus();
}

Status ScatterGradient(GradientContext& c) {
  const GradientArray g = GradientsOf(c, c.gradient());
  c.set_input(2, c.Op("TensorArrayGatherV3", {g.handle, c.input(1), g.flow},
                      {{"dtype", c.node().input_type(2).dtype}}));
  c.set_input(3, c.gradient());
  return absl::OkStatus();
}

Status ConcatGradient(GradientContext& c) {
  const GradientArray g = GradientsOf(c, c.input(1));
  c.set_input(1, c.Op("TensorArraySplitV3", {g.handle, c.gradient(), c.output(1), g.flow}));
  return absl::OkStatus();
}

Status SplitGradient(GradientContext& c) {
  const GradientArray g = GradientsOf(c, c.gradient());
  c.set_input(1, c.Op("TensorArrayConcatV3", {g.handle, g.flow},
                      {{"dtype", c.node().input_type(1).dtype}}));
  c.set_input(3, c.gradient());
  return absl::OkStatus();
}

// What all that read or write an array begin with.
OpSpec OnArray(const char* name, const char* doc) {
  OpSpec spec(name);
  spec.Doc(doc).Stateful().Input("handle: resource");
  return spec;
}

void AddCreation(Catalogue& catalogue) {
  catalogue.Add(OpSpec("TensorArrayV3")
                    .Doc("Makes an array of `size` tensors that lives as long as the step.\n"
                         "Each element is written once. Where `clear_after_read`, it is read "
                         "once, too.")
                    .Input("size: int32")
                    .HostInput("size")
                    .Output("handle: resource")
                    .Output("flow: float")
                    .Attr("dtype: type")
                    .Attr("element_shape: shape = unknown")
                    .Attr("dynamic_size: bool = false")
                    .Attr("clear_after_read: bool = true")
                    .Attr("identical_element_shapes: bool = false")
                    .Attr("tensor_array_name: string = ''")
                    .Stateful()
                    .Shape(shapes::Scalar)
                    .NoGradient()
                    .Kernel(MakeKernel<CreateKernel>(), KernelCost::kInline));
  const auto add = [&](OpSpec& spec) {
    catalogue.Add(std::move(spec.Output("grad_handle: resource")
                                .Output("flow_out: float")
                                .Attr("source: string")
                                .Shape(shapes::Scalar)
                                .Gradient(GradientArrayGradient)
                                .Kernel(MakeKernel<GradientKernel>(), KernelCost::kInline)));
  };
  add(OnArray("TensorArrayGradV3",
              "The array that gradients of `source` for an array's elements add up in; made by "
              "the first to ask.")
          .Input("flow_in: float"));
  add(OnArray("TensorArrayGradWithShape",
              "The same, with `shape_to_prepend` in front of each element's shape.")
          .Input("flow_in: float")
          .Input("shape_to_prepend: int32")
          .HostInput("shape_to_prepend"));
}

void AddElements(Catalogue& catalogue) {
  catalogue.Add(std::move(OnArray("TensorArrayWriteV3",
                                  "Writes an element; an array of dynamic size grows to have it.\n"
                                  "InvalidArgument if it was written or read before.")
                              .Input("index: int32")
                              .HostInput("index")
                              .Input("value: T")
                              .Input("flow_in: float")
                              .Output("flow_out: float")
                              .Attr("T: type")
                              .Shape(shapes::Scalar)
                              .Gradient(WriteGradient)
                              .Kernel(MakeKernel<WriteKernel>(), KernelCost::kInline)));
  catalogue.Add(std::move(OnArray("TensorArrayReadV3",
                                  "Reads an element.\nInvalidArgument if it was not written, or "
                                  "was read and cleared before.")
                              .Input("index: int32")
                              .HostInput("index")
                              .Input("flow_in: float")
                              .Output("value: dtype")
                              .Attr("dtype: type")
                              .Shape(shapes::Unknown)
                              .Gradient(ReadGradient)
                              .Kernel(MakeKernel<ReadKernel>(), KernelCost::kInline)));
  catalogue.Add(std::move(OnArray("TensorArraySizeV3", "How many elements the array has.")
                              .Input("flow_in: float")
                              .Output("size: int32")
                              .HostOutput("size")
                              .Shape(shapes::Scalar)
                              .NoGradient()
                              .Kernel(MakeKernel<SizeKernel>(), KernelCost::kInline)));
  catalogue.Add(std::move(
      OnArray("TensorArrayCloseV3", "Drops the elements; other ops on the array fail from then on.")
          .Shape(shapes::NoOutputs)
          .NoGradient()
          .Kernel(MakeKernel<CloseKernel>(), KernelCost::kInline)));
}

void AddWholes(Catalogue& catalogue) {
  catalogue.Add(std::move(
      OnArray("TensorArrayGatherV3", "Stacks the elements at `indices`, which have one shape.")
          .Input("indices: int32")
          .HostInput("indices")
          .Input("flow_in: float")
          .Output("value: dtype")
          .Attr("dtype: type")
          .Attr("element_shape: shape = unknown")
          .Shape(GatherShape)
          .Gradient(GatherGradient)
          .Kernel(MakeKernel<GatherKernel>())));
  catalogue.Add(
      std::move(OnArray("TensorArrayScatterV3", "Writes row i of `value` as element indices[i].")
                    .Input("indices: int32")
                    .HostInput("indices")
                    .Input("value: T")
                    .Input("flow_in: float")
                    .Output("flow_out: float")
                    .Attr("T: type")
                    .Shape(shapes::Scalar)
                    .Gradient(ScatterGradient)
                    .Kernel(MakeKernel<ScatterKernel>())));
  catalogue.Add(std::move(OnArray("TensorArrayConcatV3",
                                  "Joins all elements along their first dimension; `lengths` has "
                                  "their sizes there.")
                              .Input("flow_in: float")
                              .Output("value: dtype")
                              .Output("lengths: int64")
                              .HostOutput("lengths")
                              .Attr("dtype: type")
                              .Attr("element_shape_except0: shape = unknown")
                              .Shape(ConcatShape)
                              .Gradient(ConcatGradient)
                              .Kernel(MakeKernel<ConcatKernel>())));
  catalogue.Add(std::move(OnArray("TensorArraySplitV3",
                                  "Writes the rows of `value` as elements of `lengths` rows each.")
                              .Input("value: T")
                              .Input("lengths: int64")
                              .HostInput("lengths")
                              .Input("flow_in: float")
                              .Output("flow_out: float")
                              .Attr("T: type")
                              .Shape(shapes::Scalar)
                              .Gradient(SplitGradient)
                              .Kernel(MakeKernel<SplitKernel>())));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddCreation(catalogue);
  AddElements(catalogue);
  AddWholes(catalogue);
}

}  // namespace weft::ops::control::tensor_array
