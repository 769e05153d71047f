// SPDX-License-Identifier: Apache-2.0
// Ops that give the same elements another shape: the output shares the input's bytes.
#include <memory>
#include <optional>

#include "weft/kernel/op_spec.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::reshape {
namespace {

// `sizes` with its one -1 replaced by what is left of the input. Where a size is 0, that is the
// quotient of the sizes that are not: [0, 3] as [0, -1] stays [0, 3].
StatusOr<Shape> CompleteShape(IndexVector sizes, const Shape& input) {
  std::optional<size_t> unknown;
  int64_t product = 1;
  bool has_zero = false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      if (unknown) {
        return InvalidArgument("Only one input size may be -1, not both ", *unknown, " and ", i);
      }
      unknown = i;
    } else if (sizes[i] < 0) {
      return InvalidArgument("Size ", i, " must be non-negative, not ", sizes[i]);
    } else if (sizes[i] == 0) {
      has_zero = true;
    } else {
      WEFT_ASSIGN_OR_RETURN(product, MultiplySizes(product, sizes[i]));
    }
  }
  const int64_t elements = input.num_elements();
  if (unknown) {
    int64_t divided = 1;
    for (const int64_t size : input.dims()) divided *= has_zero && size == 0 ? 1 : size;
    const int64_t missing = divided / product;
    if (missing * product != divided && (elements > 0 || !has_zero)) {
      return InvalidArgument("Input to reshape is a tensor with ", divided,
                             " values, but the requested shape requires a multiple of ", product);
    }
    sizes[*unknown] = missing;
  }
  WEFT_ASSIGN_OR_RETURN(Shape shape, Shape::Make(sizes));
  if (shape.num_elements() != elements) {
    return InvalidArgument("Input to reshape is a tensor with ", elements,
                           " values, but the requested shape has ", shape.num_elements());
  }
  return shape;
}

Status ShareAs(KernelContext& c, const Shape& shape) {
  WEFT_ASSIGN_OR_RETURN(Tensor view, c.input(0).Reshaped(shape));
  c.SetOutput(0, std::move(view));
  return absl::OkStatus();
}

class ReshapeKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& sizes = c.input(1);
    // One size may be a scalar, as in graphs of the first versions.
    if (sizes.rank() > 1) {
      return InvalidArgument("sizes input must be 1-D, not ", sizes.shape().ToString());
    }
    if (sizes.num_elements() >= kMaxRank) {
      return InvalidArgument("too many dimensions: must be < ", kMaxRank, ", but received ",
                             sizes.num_elements());
    }
    WEFT_ASSIGN_OR_RETURN(IndexVector values, IndexValues(sizes, "sizes"));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, CompleteShape(std::move(values), c.input(0).shape()));
    return ShareAs(c, shape);
  }
};

class ExpandDimsKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Shape& input = c.input(0).shape();
    if (c.input(1).num_elements() != 1) {
      return InvalidArgument("'dim' must be a tensor with a single value");
    }
    const int64_t dim = IndexAt(c.input(1), 0);
    if (dim < -1 - input.rank() || dim > input.rank()) {
      return InvalidArgument("Tried to expand dim index ", dim, " for tensor with ", input.rank(),
                             " dimensions.");
    }
    Shape shape = input;
    shape.InsertDim(static_cast<int>(dim < 0 ? dim + input.rank() + 1 : dim), 1);
    return ShareAs(c, shape);
  }
};

class SqueezeKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(auto dims, c.Attr<AttrValue::IntList>("squeeze_dims"));
    return std::make_unique<SqueezeKernel>(std::move(dims));
  }
  explicit SqueezeKernel(AttrValue::IntList dims) : dims_(std::move(dims)) {}

  Status Compute(KernelContext& c) override {
    const Shape& input = c.input(0).shape();
    absl::InlinedVector<bool, 8> drop(input.rank(), dims_.empty());
    for (const int64_t dim : dims_) {
      if (dim < -input.rank() || dim >= input.rank()) {
        return InvalidArgument("Tried to squeeze dim index ", dim, " for tensor with ",
                               input.rank(), " dimensions.");
      }
      const int64_t i = dim < 0 ? dim + input.rank() : dim;
      if (input.dim(static_cast<int>(i)) != 1) {
        return InvalidArgument("Can not squeeze dim[", i, "], expected a dimension of 1, got ",
                               input.dim(static_cast<int>(i)));
      }
      drop[i] = true;
    }
    Shape shape;
    for (int i = 0; i < input.rank(); ++i) {
      if (!drop[i] || input.dim(i) != 1) shape.AddDim(input.dim(i));
    }
    return ShareAs(c, shape);
  }

 private:
  const AttrValue::IntList dims_;
};

// Same bytes as another type: a wider type swallows the last dimension, a narrower one adds one.
StatusOr<PartialShape> BitcastShapeOf(PartialShape shape, size_t from, size_t to) {
  if (!shape.known_rank() || from == to) return shape;
  if (to > from) {
    const int64_t factor = static_cast<int64_t>(to / from);
    const int last = shape.rank() - 1;
    if (shape.rank() < 1 || (shape.dim(last) != factor && shape.dim(last) >= 0)) {
      return InvalidArgument("Cannot bitcast due to shape. ",
                             shape.rank() < 1 ? -1 : shape.dim(last), " does not match ", factor);
    }
    return PartialShape::Make(shape.dims().subspan(0, static_cast<size_t>(last)));
  }
  shape.AddDim(static_cast<int64_t>(from / to));
  return shape;
}

class BitcastKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    const size_t from = DTypeSize(c.input_dtype(0));
    const size_t to = DTypeSize(c.output_dtype(0));
    if (!IsPlain(c.input_dtype(0)) || !IsPlain(c.output_dtype(0)) ||
        (from % to != 0 && to % from != 0)) {
      return InvalidArgument("Cannot convert between types ", DTypeName(c.input_dtype(0)), " and ",
                             DTypeName(c.output_dtype(0)));
    }
    return std::make_unique<BitcastKernel>();
  }
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    const DType to = c.output_dtype(0);
    WEFT_ASSIGN_OR_RETURN(const PartialShape partial,
                          BitcastShapeOf(input.shape(), DTypeSize(input.dtype()), DTypeSize(to)));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, partial.ToShape());
    c.SetOutput(0, input.BitcastTo(to, shape));
    return absl::OkStatus();
  }
};

Status ReshapeShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  if (c.constant(1) == nullptr) {
    WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(1));
    c.set_output(0, std::move(shape));
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(IndexVector sizes, IndexValues(*c.constant(1), "shape"));
  if (input.IsFullyDefined()) {
    WEFT_ASSIGN_OR_RETURN(const Shape known, input.ToShape());
    WEFT_ASSIGN_OR_RETURN(Shape shape, CompleteShape(std::move(sizes), known));
    c.set_output(0, std::move(shape));
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(sizes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status ExpandDimsShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  if (!input.known_rank()) return absl::OkStatus();
  if (c.constant(1) == nullptr) {
    c.set_output(0, PartialShape::UnknownOfRank(input.rank() + 1));
    return absl::OkStatus();
  }
  if (c.constant(1)->num_elements() != 1) {
    return InvalidArgument("'dim' input must be a tensor with a single value");
  }
  const int64_t dim = IndexAt(*c.constant(1), 0);
  if (dim < -1 - input.rank() || dim > input.rank()) {
    return InvalidArgument("dim ", dim, " not in the interval [", -1 - input.rank(), ", ",
                           input.rank(), "].");
  }
  Dims dims(input.dims().begin(), input.dims().end());
  dims.insert(dims.begin() + (dim < 0 ? dim + input.rank() + 1 : dim), 1);
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(dims));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status SqueezeShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  WEFT_ASSIGN_OR_RETURN(const auto dims, c.Attr<AttrValue::IntList>("squeeze_dims"));
  if (!input.known_rank()) return absl::OkStatus();
  absl::InlinedVector<bool, 8> named(input.rank(), false);
  for (const int64_t dim : dims) {
    WEFT_ASSIGN_OR_RETURN(const int axis, CanonicalAxis(dim, input.rank(), "squeeze_dims"));
    if (input.dim(axis) >= 0 && input.dim(axis) != 1) {
      return InvalidArgument("Can not squeeze dim[", axis, "], expected a dimension of 1, got ",
                             input.dim(axis));
    }
    named[axis] = true;
  }
  PartialShape out = PartialShape::UnknownOfRank(0);
  for (int i = 0; i < input.rank(); ++i) {
    // Without names, a dimension of unknown size may or may not stay.
    if (dims.empty() && input.dim(i) < 0) return absl::OkStatus();
    if (dims.empty() ? input.dim(i) != 1 : !named[i]) out.AddDim(input.dim(i));
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status BitcastShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const DType from, c.Attr<DType>("T"));
  WEFT_ASSIGN_OR_RETURN(const DType to, c.Attr<DType>("type"));
  WEFT_ASSIGN_OR_RETURN(PartialShape shape,
                        BitcastShapeOf(c.input(0), DTypeSize(from), DTypeSize(to)));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

// The gradient in the input's shape.
Status ShapeGradientAsInput(GradientContext& c) {
  c.set_input(0, c.Op("Reshape", {c.gradient(), c.Op("Shape", {c.input(0)})}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Reshape")
          .AnyDevice()
          .Doc("Returns the elements of `tensor` in another shape.\n"
               "One size may be -1: it becomes what is left. InvalidArgument if the number of "
               "elements differs.")
          .Input("tensor: T")
          .Input("shape: Tshape")
          .HostInput("shape")
          .Output("output: T")
          .Attr("T: type")
          .Attr("Tshape: {int32, int64} = DT_INT32")
          .Traits({.passes_on = PassesOn::kView})
          .Shape(ReshapeShape)
          .Gradient(ShapeGradientAsInput)
          .Kernel(MakeKernel<ReshapeKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("ExpandDims")
                    .AnyDevice()
                    .Doc("Inserts a dimension of size 1 before dimension `dim`.\n"
                         "`dim` is in [-1 - rank, rank]; negative ones count from the end.")
                    .Input("input: T")
                    .Input("dim: Tdim")
                    .HostInput("dim")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("Tdim: {int32, int64} = DT_INT32")
                    .Traits({.passes_on = PassesOn::kView})
                    .Shape(ExpandDimsShape)
                    .Gradient(ShapeGradientAsInput)
                    .Kernel(MakeKernel<ExpandDimsKernel>(), KernelCost::kInline));
  catalogue.Add(OpSpec("Squeeze")
                    .AnyDevice()
                    .Doc("Removes dimensions of size 1: those named, or all.\n"
                         "InvalidArgument if a named one has another size.")
                    .Input("input: T")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("squeeze_dims: list(int) >= 0 = []")
                    .Traits({.passes_on = PassesOn::kView})
                    .Shape(SqueezeShape)
                    .Gradient(ShapeGradientAsInput)
                    .Kernel(MakeKernel<SqueezeKernel>(), KernelCost::kInline));
  catalogue.Add(
      OpSpec("Bitcast")
          .AnyDevice()
          .Doc("Returns the bytes of the input as another type.\n"
               "A wider type needs a last dimension of the ratio of sizes and removes it; a "
               "narrower one adds it.")
          .Input("input: T")
          .Output("output: type")
          .Attr("T: numbertype")
          .Attr("type: numbertype")
          .Shape(BitcastShape)
          .NoGradient()
          .Kernel(MakeKernel<BitcastKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::array::reshape
