// SPDX-License-Identifier: Apache-2.0
// Cutting a tensor along a dimension into parts that keep it (Split) or lose it (Unpack).
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_kernel.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::split {
namespace {

// Shared parts keep the whole alive and must stay aligned for SIMD.
constexpr int64_t kAlignment = 64;

// Rows of the input as views of it, where that pays and all of them start aligned. False otherwise.
StatusOr<bool> ShareRows(KernelContext& c, const Tensor& input, absl::Span<const int64_t> sizes,
                         bool keep_axis) {
  if (input.size_bytes() < 4096 || input.dim(0) == 0) return false;
  const int64_t row = input.num_elements() / input.dim(0);
  const int64_t row_bytes = row * static_cast<int64_t>(DTypeSize(input.dtype()));
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    if (begin * row_bytes % kAlignment != 0) return false;
    begin += size;
  }
  Shape shape = input.shape();
  if (!keep_axis) shape.RemoveDim(0);
  const auto base = reinterpret_cast<const std::byte*>(input.buffer()->data());
  size_t offset = static_cast<size_t>(input.bytes() - base);
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (keep_axis && shape.dim(0) != sizes[i]) shape.SetDim(0, sizes[i]);
    c.SetOutput(static_cast<int>(i), Tensor(input.dtype(), shape, input.buffer(), offset));
    offset += static_cast<size_t>(sizes[i] * row_bytes);
  }
  return true;
}

// Output i takes sizes[i] of the input's `axis`; without `keep_axis` that dimension goes.
Status Cut(KernelContext& c, const Tensor& input, int axis, absl::Span<const int64_t> sizes,
           bool keep_axis) {
  if (axis == 0) {
    WEFT_ASSIGN_OR_RETURN(const bool shared, ShareRows(c, input, sizes, keep_axis));
    if (shared) return absl::OkStatus();
  }
  const IndexVector strides = StridesOf(input.shape());
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    Dims dims(input.shape().dims().begin(), input.shape().dims().end());
    dims[axis] = sizes[i];
    const int output_index = static_cast<int>(i);
    StridedCopy copy;
    copy.source_offset = begin * strides[axis];
    for (int d = 0; d < input.rank(); ++d) copy.AddDim(dims[d], strides[d], 0);
    if (!keep_axis) dims.erase(dims.begin() + axis);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    begin += sizes[i];
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(output_index, shape));
    copy.MakeTargetDense();
    Copy(c, std::move(copy), input, output);
  }
  return absl::OkStatus();
}

class SplitKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(1);
    if (c.input(0).num_elements() != 1) {
      return InvalidArgument("split_dim must be a scalar but has rank ", c.input(0).rank());
    }
    const int64_t dim = IndexAt(c.input(0), 0);
    if (dim < -input.rank() || dim >= input.rank()) {
      return InvalidArgument("-input rank(-", input.rank(), ") <= split_dim < input rank (",
                             input.rank(), "), but got ", dim);
    }
    const int axis = static_cast<int>(dim < 0 ? dim + input.rank() : dim);
    const int64_t size = input.dim(axis);
    if (size % c.num_outputs() != 0) {
      return InvalidArgument(
          "Number of ways to split should evenly divide the split dimension, but got "
          "split_dim ",
          axis, " (size = ", size, ") and num_split ", c.num_outputs());
    }
    return Cut(c, input, axis, IndexVector(c.num_outputs(), size / c.num_outputs()), true);
  }
};

// `sizes` with its one -1 replaced by what is left of `total`.
Status CompleteSizes(IndexVector* sizes, int64_t total) {
  int64_t* unknown = nullptr;
  int64_t sum = 0;
  for (int64_t& size : *sizes) {
    if (size == -1) {
      if (unknown != nullptr) {
        return InvalidArgument("There can only be one -1 in the input.");
      }
      unknown = &size;
      continue;
    }
    if (size < 0)
      return InvalidArgument("Split size at index ", &size - sizes->data(), " must be >= 0, got ",
                             size);
    if (__builtin_add_overflow(sum, size, &sum)) return InvalidArgument("The split sizes overflow");
  }
  if (unknown == nullptr ? sum != total : sum > total) {
    return InvalidArgument(
        "Determined shape must either match input shape along split_dim exactly if fully "
        "specified, or be less than the size of the input along split_dim if not fully "
        "specified. Got: ",
        sum, " for size ", total);
  }
  if (unknown != nullptr) *unknown = total - sum;
  return absl::OkStatus();
}

class SplitVKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (c.input(1).rank() != 1 || c.input(1).num_elements() != c.num_outputs()) {
      return InvalidArgument(
          "size of the split_tensor must be 1-D and have the same elements as outputs got ",
          c.input(1).rank(), " -D and ", c.input(1).num_elements(), " elements");
    }
    WEFT_ASSIGN_OR_RETURN(IndexVector sizes, IndexValues(c.input(1), "size_splits"));
    if (c.input(2).num_elements() != 1) {
      return InvalidArgument("split_dim_tensor must have exactly one element.");
    }
    const int64_t dim = IndexAt(c.input(2), 0);
    if (dim < -input.rank() || dim >= input.rank()) {
      return InvalidArgument("-input rank(-", input.rank(), ") <= split_dim < input rank (",
                             input.rank(), "), but got ", dim);
    }
    const int axis = static_cast<int>(dim < 0 ? dim + input.rank() : dim);
    WEFT_RETURN_IF_ERROR(CompleteSizes(&sizes, input.dim(axis)));
    return Cut(c, input, axis, sizes, true);
  }
};

class UnpackKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
    return std::make_unique<UnpackKernel>(axis);
  }
  explicit UnpackKernel(int64_t axis) : axis_(axis) {}
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (axis_ < -input.rank() || axis_ >= input.rank()) {
      return InvalidArgument("axis = ", axis_, " not in [", -input.rank(), ", ", input.rank(), ")");
    }
    const int axis = static_cast<int>(axis_ < 0 ? axis_ + input.rank() : axis_);
    if (input.dim(axis) != c.num_outputs()) {
      return InvalidArgument("Input shape axis ", axis, " must equal ", c.num_outputs(),
                             ", got shape ", input.shape().ToString());
    }
    return Cut(c, input, axis, IndexVector(c.num_outputs(), 1), false);
  }

 private:
  const int64_t axis_;
};

Status SplitShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const std::optional<int> axis, ConstantAxis(c, 0, c.input(1).rank()));
  PartialShape part = PartialShape::UnknownOfRank(c.input(1).rank());
  if (!c.input(1).known_rank()) part = PartialShape();
  if (axis) {
    part = c.input(1);
    const int64_t size = part.dim(*axis);
    if (size >= 0 && size % c.num_outputs() != 0) {
      return InvalidArgument("Dimension size must be evenly divisible by ", c.num_outputs(),
                             " but is ", size);
    }
    part.SetDim(*axis, size < 0 ? -1 : size / c.num_outputs());
  }
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, part);
  return absl::OkStatus();
}

Status SplitVShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  WEFT_ASSIGN_OR_RETURN(const std::optional<int> axis, ConstantAxis(c, 2, input.rank()));
  if (!input.known_rank()) return absl::OkStatus();
  IndexVector sizes(c.num_outputs(), -1);
  if (axis && c.constant(1) != nullptr) {
    WEFT_ASSIGN_OR_RETURN(sizes, IndexValues(*c.constant(1), "size_splits"));
    if (static_cast<int>(sizes.size()) != c.num_outputs()) {
      return InvalidArgument("Length of size_splits should be equal to num_outputs");
    }
    if (input.dim(*axis) >= 0) WEFT_RETURN_IF_ERROR(CompleteSizes(&sizes, input.dim(*axis)));
  }
  for (int i = 0; i < c.num_outputs(); ++i) {
    PartialShape part = axis ? input : PartialShape::UnknownOfRank(input.rank());
    if (axis) part.SetDim(*axis, std::max<int64_t>(-1, sizes[i]));
    c.set_output(i, std::move(part));
  }
  return absl::OkStatus();
}

Status UnpackShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  if (!input.known_rank()) return absl::OkStatus();
  WEFT_ASSIGN_OR_RETURN(const int64_t value, c.Attr<int64_t>("axis"));
  WEFT_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(value, input.rank(), "axis"));
  if (input.dim(axis) >= 0 && input.dim(axis) != c.num_outputs()) {
    return InvalidArgument("Dimension must be ", c.num_outputs(), " but is ", input.dim(axis));
  }
  Dims dims(input.dims().begin(), input.dims().end());
  dims.erase(dims.begin() + axis);
  WEFT_ASSIGN_OR_RETURN(const PartialShape part, PartialShape::Make(dims));
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, part);
  return absl::OkStatus();
}

// The outputs' gradients, zeros where no loss depends on one.
std::vector<Endpoint> OutputGradients(GradientContext& c) {
  std::vector<Endpoint> gradients;
  for (int i = 0; i < c.node().num_outputs(); ++i) {
    gradients.push_back(c.gradient(i) ? c.gradient(i) : c.Op("ZerosLike", {c.output(i)}));
  }
  return gradients;
}

Status JoinGradients(GradientContext& c, int value_input, int axis_input) {
  const std::vector<Endpoint> gradients = OutputGradients(c);
  if (gradients.size() == 1) {
    c.set_input(value_input, gradients[0]);
  } else {
    c.set_input(value_input, c.Op("ConcatV2", {gradients, c.input(axis_input)}));
  }
  return absl::OkStatus();
}

Status UnpackGradient(GradientContext& c) {
  if (c.node().num_outputs() == 0) {
    c.set_input(0, c.Op("ZerosLike", {c.input(0)}));
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(const int64_t axis, c.Attr<int64_t>("axis"));
  c.set_input(0, c.Op("Pack", {OutputGradients(c)}, {{"axis", axis}}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Split")
                    .Doc("Cuts `value` along `split_dim` into `num_split` equal parts.\n"
                         "InvalidArgument if the size is not a multiple of `num_split`.")
                    .Input("split_dim: int32")
                    .HostInput("split_dim")
                    .Input("value: T")
                    .Output("output: num_split * T")
                    .Attr("num_split: int >= 1")
                    .Attr("T: type")
                    .Shape(SplitShape)
                    .Gradient([](GradientContext& c) { return JoinGradients(c, 1, 0); })
                    .Kernel(MakeKernel<SplitKernel>()));
  catalogue.Add(
      OpSpec("SplitV")
          .Doc("Cuts `value` along `split_dim` into parts of the given sizes.\n"
               "One size may be -1: it becomes what is left. InvalidArgument if the sum differs.")
          .Input("value: T")
          .Input("size_splits: Tlen")
          .HostInput("size_splits")
          .Input("split_dim: int32")
          .HostInput("split_dim")
          .Output("output: num_split * T")
          .Attr("num_split: int >= 1")
          .Attr("T: type")
          .Attr("Tlen: {int8, int32, int64} = DT_INT64")
          .Shape(SplitVShape)
          .Gradient([](GradientContext& c) { return JoinGradients(c, 0, 2); })
          .Kernel(MakeKernel<SplitVKernel>()));
  catalogue.Add(OpSpec("Unpack")
                    .Doc("Cuts `value` along `axis` into tensors without that dimension.\n"
                         "InvalidArgument if its size is not `num`.")
                    .Input("value: T")
                    .Output("output: num * T")
                    .Attr("num: int >= 0")
                    .Attr("T: type")
                    .Attr("axis: int = 0")
                    .Shape(UnpackShape)
                    .Gradient(UnpackGradient)
                    .Kernel(MakeKernel<UnpackKernel>()));
}

}  // namespace weft::ops::array::split
