// SPDX-License-Identifier: Apache-2.0
// Repeating a tensor: Tile, BroadcastTo and the shape that broadcasting makes.
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_kernel.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::tile {
namespace {

class TileKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    const Tensor& multiples = c.input(1);
    if (multiples.rank() != 1) {
      return InvalidArgument("Expected multiples to be 1-D, but got shape ",
                             multiples.shape().ToString());
    }
    if (multiples.num_elements() != input.rank()) {
      return InvalidArgument("Expected multiples argument to be a vector of length ", input.rank(),
                             " but got length ", multiples.num_elements());
    }
    const IndexVector strides = StridesOf(input.shape());
    Dims sizes(input.rank());
    StridedCopy copy;
    for (int i = 0; i < input.rank(); ++i) {
      const int64_t times = IndexAt(multiples, i);
      if (times < 0) return InvalidArgument("Expected multiples[", i, "] >= 0, but got ", times);
      WEFT_ASSIGN_OR_RETURN(sizes[i], MultiplySizes(times, input.dim(i)));
      copy.AddDim(times, 0, 0);
      copy.AddDim(input.dim(i), strides[i], 0);
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    if (shape == input.shape()) {
      c.SetOutput(0, input);
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    copy.MakeTargetDense();
    Copy(c, std::move(copy), input, output);
    return absl::OkStatus();
  }
};

class BroadcastToKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const Shape shape, ShapeFromValues(c.input(1), "shape"));
    const int missing = shape.rank() - input.rank();
    if (missing < 0) {
      return InvalidArgument("Rank of input (", input.rank(),
                             ") must be no greater than rank of output shape (", shape.rank(),
                             ").");
    }
    const IndexVector strides = StridesOf(input.shape());
    StridedCopy copy;
    for (int i = 0; i < shape.rank(); ++i) {
      const int64_t size = i < missing ? 1 : input.dim(i - missing);
      if (size != shape.dim(i) && size != 1) {
        return InvalidArgument("Incompatible shapes: ", input.shape().ToString(), " vs. ",
                               shape.ToString());
      }
      copy.AddDim(shape.dim(i), size == 1 ? 0 : strides[i - missing], 0);
    }
    if (shape == input.shape()) {
      c.SetOutput(0, input);
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    copy.MakeTargetDense();
    Copy(c, std::move(copy), input, output);
    return absl::OkStatus();
  }
};

class BroadcastArgsKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    Dims joined;
    for (int i = 0; i < 2; ++i) {
      if (c.input(i).rank() != 1) {
        return InvalidArgument("In[", i, "] must be a vector.", c.input(i).shape().ToString());
      }
    }
    const auto size_at = [&](int input, int64_t back) -> int64_t {
      const int64_t count = c.input(input).num_elements();
      return back < count ? IndexAt(c.input(input), count - 1 - back) : 1;
    };
    const int64_t rank = std::max(c.input(0).num_elements(), c.input(1).num_elements());
    for (int64_t back = rank; back-- > 0;) {
      const int64_t a = size_at(0, back);
      const int64_t b = size_at(1, back);
      if (a != b && a != 1 && b != 1) {
        return InvalidArgument("Incompatible shapes: [", a, "] vs. [", b, "] in dimension ",
                               rank - 1 - back);
      }
      joined.push_back(a == 1 ? b : a);
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, Shape{rank}));
    return StoreIndices(joined, output);
  }
};

Status TileShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  WEFT_ASSIGN_OR_RETURN(const PartialShape multiples, c.WithRank(1, 1));
  const int64_t rank = input.known_rank() ? input.rank() : multiples.dim(0);
  if (multiples.dim(0) >= 0 && multiples.dim(0) != rank) {
    return InvalidArgument("Tile multiples must have length ", rank, ", got ", multiples.dim(0));
  }
  if (rank < 0 || rank > kMaxRank) return absl::OkStatus();
  PartialShape out = PartialShape::UnknownOfRank(static_cast<int>(rank));
  for (int i = 0; i < rank && c.constant(1) != nullptr; ++i) {
    const int64_t times = IndexAt(*c.constant(1), i);
    if (times < 0) return InvalidArgument("Expected multiples[", i, "] >= 0, but got ", times);
    if (input.dim(i) < 0) continue;
    WEFT_ASSIGN_OR_RETURN(const int64_t size, MultiplySizes(times, input.dim(i)));
    out.SetDim(i, size);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status BroadcastToShape(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, c.ShapeFromInput(1));
  const PartialShape& input = c.input(0);
  for (int back = 1; shape.known_rank() && back <= input.rank(); ++back) {
    if (back > shape.rank()) {
      return InvalidArgument("Rank of input (", input.rank(),
                             ") must be no greater than rank of output shape (", shape.rank(),
                             ").");
    }
    const int64_t from = input.dim(input.rank() - back);
    const int64_t to = shape.dim(shape.rank() - back);
    if (from > 1 && to >= 0 && from != to) {
      return InvalidArgument("Cannot broadcast ", input.ToString(), " to ", shape.ToString());
    }
  }
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status BroadcastArgsShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape a, c.WithRank(0, 1));
  WEFT_ASSIGN_OR_RETURN(const PartialShape b, c.WithRank(1, 1));
  const bool known = a.dim(0) >= 0 && b.dim(0) >= 0;
  c.set_output(0, PartialShape{known ? std::max(a.dim(0), b.dim(0)) : -1});
  return absl::OkStatus();
}

// Seen as [multiple, size, ...] the gradient is summed over the multiples.
Status TileGradient(GradientContext& c) {
  GraphBuilder& b = c.builder();
  const DType type = c.node().input_type(1).dtype;
  const Endpoint shape = c.Op("Shape", {c.input(0)}, {{"out_type", type}});
  const Endpoint pairs = c.Op("Pack", {std::vector<Endpoint>{c.input(1), shape}}, {{"axis", 1}});
  const Endpoint split = c.Op("Reshape", {pairs, b.Constant(Tensor::Vector<int32_t>({-1}))});
  const Endpoint axes =
      c.Op("Range", {b.Scalar<int32_t>(0), c.Op("Size", {split}), b.Scalar<int32_t>(2)});
  const Endpoint sum = c.Op("Sum", {c.Op("Reshape", {c.gradient(), split}), axes});
  c.set_input(0, c.Op("Reshape", {sum, shape}));
  return absl::OkStatus();
}

Status BroadcastToGradient(GradientContext& c) {
  const DType type = c.node().input_type(1).dtype;
  const Endpoint shape = c.Op("Shape", {c.input(0)}, {{"out_type", type}});
  Node* axes = c.builder().AddNode("BroadcastGradientArgs", {c.input(1), shape});
  if (axes == nullptr) return c.builder().status();
  const Endpoint sum = c.Op("Sum", {c.gradient(), Endpoint{axes, 1}}, {{"keep_dims", true}});
  c.set_input(0, c.Op("Reshape", {sum, shape}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("Tile")
                    .Doc("Repeats `input` `multiples[i]` times along dimension i.\n"
                         "InvalidArgument for a negative multiple.")
                    .Input("input: T")
                    .Input("multiples: Tmultiples")
                    .HostInput("multiples")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("Tmultiples: {int32, int64} = DT_INT32")
                    .Shape(TileShape)
                    .Gradient(TileGradient)
                    .Kernel(MakeKernel<TileKernel>()));
  catalogue.Add(
      OpSpec("BroadcastTo")
          .Doc("Repeats dimensions of size 1 (and missing leading ones) to make `shape`.\n"
               "InvalidArgument where another size would have to change.")
          .Input("input: T")
          .Input("shape: Tidx")
          .HostInput("shape")
          .Output("output: T")
          .Attr("T: type")
          .Attr("Tidx: {int32, int64} = DT_INT32")
          .Shape(BroadcastToShape)
          .Gradient(BroadcastToGradient)
          .Kernel(MakeKernel<BroadcastToKernel>()));
  catalogue.Add(OpSpec("BroadcastArgs")
                    .Doc("Returns the shape that tensors of shapes `s0` and `s1` broadcast to.")
                    .Input("s0: T")
                    .HostInput("s0")
                    .Input("s1: T")
                    .HostInput("s1")
                    .Output("r0: T")
                    .HostOutput("r0")
                    .Attr("T: {int32, int64} = DT_INT32")
                    .Shape(BroadcastArgsShape)
                    .NoGradient()
                    .Kernel(MakeKernel<BroadcastArgsKernel>(), KernelCost::kInline));
}

}  // namespace weft::ops::array::tile
