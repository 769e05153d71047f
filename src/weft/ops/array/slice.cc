// SPDX-License-Identifier: Apache-2.0
// Slice: a box out of a tensor.
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_kernel.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::slice {
namespace {

// Below this, sharing bytes saves nothing and keeps the whole input alive.
constexpr int64_t kShareBytes = 4096;
constexpr int64_t kAlignment = 64;

class SliceKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    const int rank = input.rank();
    if (c.input(1).rank() != 1 || c.input(2).rank() != 1 || c.input(1).num_elements() != rank ||
        c.input(2).num_elements() != rank) {
      return InvalidArgument("Expected begin and size arguments to be 1-D tensors of size ", rank,
                             ", but got shapes ", c.input(1).shape().ToString(), " and ",
                             c.input(2).shape().ToString(), " instead.");
    }
    const IndexVector strides = StridesOf(input.shape());
    StridedCopy copy;
    Dims sizes(rank);
    bool rows_only = true;  // nothing but dimension 0 is cut
    for (int i = 0; i < rank; ++i) {
      const int64_t begin = IndexAt(c.input(1), i);
      int64_t size = IndexAt(c.input(2), i);
      const int64_t whole = input.dim(i);
      if (begin < 0 || begin > whole) {
        return InvalidArgument("Expected begin[", i, "] in [0, ", whole, "], but got ", begin);
      }
      if (size == -1) size = whole - begin;
      if (size < 0 || size > whole - begin) {
        return InvalidArgument("Expected size[", i, "] in [0, ", whole - begin, "], but got ",
                               size);
      }
      copy.source_offset += begin * strides[i];
      copy.AddDim(size, strides[i], 0);
      sizes[i] = size;
      rows_only = rows_only && (i == 0 || size == whole);
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    if (shape == input.shape()) {
      c.SetOutput(0, input);
      return absl::OkStatus();
    }
    const auto element = static_cast<int64_t>(DTypeSize(input.dtype()));
    if (rows_only && rank > 0 && shape.num_elements() * element >= kShareBytes &&
        copy.source_offset * element % kAlignment == 0) {
      const int64_t begin = IndexAt(c.input(1), 0);
      c.SetOutput(0, input.SliceRows(begin, begin + sizes[0]));
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    copy.MakeTargetDense();
    Copy(c, std::move(copy), input, output);
    return absl::OkStatus();
  }
};

Status SliceShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  WEFT_ASSIGN_OR_RETURN(const PartialShape begin_shape, c.WithRank(1, 1));
  WEFT_ASSIGN_OR_RETURN(const PartialShape size_shape, c.WithRank(2, 1));
  const int64_t count = std::max({begin_shape.dim(0), size_shape.dim(0), int64_t{input.rank()}});
  if (count < 0) return absl::OkStatus();
  for (const int64_t known : {begin_shape.dim(0), size_shape.dim(0), int64_t{input.rank()}}) {
    if (known >= 0 && known != count) {
      return InvalidArgument("begin, size and the rank of the input must agree: ",
                             begin_shape.dim(0), ", ", size_shape.dim(0), ", ", input.rank());
    }
  }
  const int rank = static_cast<int>(count);
  PartialShape out = PartialShape::UnknownOfRank(rank);
  for (int i = 0; i < rank && c.constant(2) != nullptr; ++i) {
    const int64_t size = IndexAt(*c.constant(2), i);
    const int64_t whole = input.dim(i);
    const int64_t begin = c.constant(1) != nullptr ? IndexAt(*c.constant(1), i) : -1;
    if (size < -1) return InvalidArgument("Requires size[", i, "] >= -1, got ", size);
    if (begin >= 0 && whole >= 0 && (begin > whole || size > whole - begin)) {
      return InvalidArgument("Slice is out of bounds in dimension ", i, ": begin ", begin,
                             ", size ", size, ", of ", whole);
    }
    if (size >= 0) {
      out.SetDim(i, size);
    } else if (begin >= 0 && whole >= 0) {
      out.SetDim(i, whole - begin);
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// How many zeros go before and after, where the cut and the sizes that it cuts are known.
std::optional<Tensor> KnownPaddings(const GradientContext& c) {
  const auto constant = [&](int i) -> StatusOr<Tensor> {
    if (c.input(i).node->op() != "Const") return NotFound("Input ", i, " is no constant");
    return c.input(i).node->Attr<Tensor>("value");
  };
  const StatusOr<Tensor> begin = constant(1), size = constant(2);
  const PartialShape shape = c.builder().ShapeOf(c.input(0));
  const int rank = shape.rank();
  if (!begin.ok() || !size.ok() || begin->num_elements() != rank || size->num_elements() != rank)
    return std::nullopt;
  std::vector<int32_t> paddings;
  for (int d = 0; d < rank; ++d) {
    const int64_t before = IndexAt(*begin, d), cut = IndexAt(*size, d);
    if (cut != -1 && shape.dim(d) < 0) return std::nullopt;
    const int64_t after = cut == -1 ? 0 : shape.dim(d) - before - cut;
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    if (before < 0 || before > kMost || after < 0 || after > kMost) return std::nullopt;
    paddings.push_back(static_cast<int32_t>(before));
    paddings.push_back(static_cast<int32_t>(after));
  }
  return Tensor::FromSpan<int32_t>(Shape{rank, 2}, paddings);
}

// The gradient of a cut is the gradient with zeros around it: before `begin` and after the end.
Status SliceGradient(GradientContext& c) {
  GraphBuilder& b = c.builder();
  if (std::optional<Tensor> paddings = KnownPaddings(c)) {
    c.set_input(0, c.Op("Pad", {c.gradient(), b.Constant(*std::move(paddings))}));
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(const DType index, c.Attr<DType>("Index"));
  const Endpoint whole = c.Op("Shape", {c.input(0)}, {{"out_type", index}});
  const Endpoint part = c.Op("Shape", {c.output(0)}, {{"out_type", index}});
  const Endpoint column = b.Constant(Tensor::Vector<int32_t>({-1, 1}));
  const Endpoint before = c.Op("Reshape", {c.input(1), column});
  const Endpoint left = c.Op("Sub", {c.Op("Sub", {whole, part}), c.input(1)});
  const Endpoint after = c.Op("Reshape", {left, column});
  const Endpoint paddings =
      c.Op("ConcatV2", {std::vector<Endpoint>{before, after}, b.Scalar<int32_t>(1)});
  c.set_input(0, c.Op("Pad", {c.gradient(), paddings}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Slice")
          .Doc("Returns the box of `input` that starts at `begin` and has sizes `size`.\n"
               "A size of -1 means all that is left. InvalidArgument if the box does not lie "
               "inside.")
          .Input("input: T")
          .Input("begin: Index")
          .HostInput("begin")
          .Input("size: Index")
          .HostInput("size")
          .Output("output: T")
          .Attr("T: type")
          .Attr("Index: {int32, int64}")
          .Shape(SliceShape)
          .Gradient(SliceGradient)
          .Kernel(MakeKernel<SliceKernel>()));
}

}  // namespace weft::ops::array::slice
