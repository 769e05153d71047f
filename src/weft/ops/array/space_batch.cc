// SPDX-License-Identifier: Apache-2.0
// Moving blocks of pixels between the spatial dimensions and the batch or the channels.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::space_batch {
namespace {

// Greatest block of pixels that is taken: its square fits into 64 bits.
constexpr int64_t kMostInBlock = 1 << 20;

// The blocks and the padding (or cropping) of the dimensions after the batch.
struct Blocks {
  IndexVector block;
  IndexVector before;
  IndexVector after;
  int64_t product = 1;
  int rank() const { return static_cast<int>(block.size()); }
};

StatusOr<Blocks> BlocksOf(const IndexVector& block, const Tensor& paddings, int input_rank) {
  Blocks b;
  b.block = block;
  const auto rank = static_cast<int64_t>(block.size());
  if (input_rank < 1 + rank) {
    return InvalidArgument("input rank should be >= ", 1 + rank, " instead of ", input_rank);
  }
  if (!paddings.shape().IsMatrix() || paddings.dim(0) != rank || paddings.dim(1) != 2) {
    return InvalidArgument("paddings should have shape [", rank, ", 2] instead of ",
                           paddings.shape().ToString());
  }
  for (int64_t i = 0; i < rank; ++i) {
    if (block[i] < 1)
      return InvalidArgument("All values in block_shape must be positive, got value, ", block[i]);
    WEFT_ASSIGN_OR_RETURN(b.product, MultiplySizes(b.product, block[i]));
    b.before.push_back(IndexAt(paddings, 2 * i));
    b.after.push_back(IndexAt(paddings, 2 * i + 1));
    if (b.before[i] < 0 || b.after[i] < 0) {
      return InvalidArgument("Paddings must be non-negative: ", b.before[i], " ", b.after[i]);
    }
  }
  return b;
}

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Copies between the spread image (sizes with padding taken off) and the batch of its parts. Part
// `offset` of a dimension holds positions offset, offset + block, ... of the padded dimension.
void CopyParts(const KernelContext& c, const Blocks& b, const Tensor& spread, const Tensor& parts,
               bool to_parts, const Tensor& source, Tensor* target) {
  const IndexVector spread_strides = StridesOf(spread.shape());
  const IndexVector part_strides = StridesOf(parts.shape());
  const int64_t batch = spread.dim(0);
  IndexVector offset(b.rank(), 0);
  for (int64_t part = 0; part < b.product; ++part) {
    StridedCopy copy;
    int64_t spread_offset = 0;
    int64_t part_offset = part * batch * part_strides[0];
    const auto add = [&](int64_t size, int64_t spread_stride, int64_t part_stride) {
      copy.AddDim(size, to_parts ? spread_stride : part_stride,
                  to_parts ? part_stride : spread_stride);
    };
    add(batch, spread_strides[0], part_strides[0]);
    for (int d = 0; d < b.rank(); ++d) {
      const int axis = d + 1;
      // Position i of the part stands at i * block + offset - before of the spread image.
      const int64_t shift = b.before[d] - offset[d];
      const int64_t first = std::max<int64_t>(0, FloorDiv(shift + b.block[d] - 1, b.block[d]));
      const int64_t last = std::min<int64_t>(parts.dim(axis) - 1,
                                             FloorDiv(spread.dim(axis) - 1 + shift, b.block[d]));
      add(std::max<int64_t>(0, last - first + 1), b.block[d] * spread_strides[axis],
          part_strides[axis]);
      spread_offset += (first * b.block[d] - shift) * spread_strides[axis];
      part_offset += first * part_strides[axis];
    }
    for (int axis = b.rank() + 1; axis < spread.rank(); ++axis) {
      add(spread.dim(axis), spread_strides[axis], part_strides[axis]);
    }
    copy.source_offset = to_parts ? spread_offset : part_offset;
    copy.target_offset = to_parts ? part_offset : spread_offset;
    Copy(c, std::move(copy), source, target);
    for (int d = b.rank(); d-- > 0;) {
      if (++offset[d] < b.block[d]) break;
      offset[d] = 0;
    }
  }
}

// block_shape and paddings of either form: inputs 1 and 2, or attribute block_size and input 1.
class BlockKernel : public OpKernel {
 public:
  explicit BlockKernel(int64_t block_size) : block_size_(block_size) {}

 protected:
  StatusOr<Blocks> Read(const KernelContext& c) const {
    if (block_size_ > 0) return BlocksOf({block_size_, block_size_}, c.input(1), c.input(0).rank());
    if (c.input(1).rank() != 1) {
      return InvalidArgument("block_shape must be 1-D, got shape ", c.input(1).shape().ToString());
    }
    WEFT_ASSIGN_OR_RETURN(const IndexVector block, IndexValues(c.input(1), "block_shape"));
    return BlocksOf(block, c.input(2), c.input(0).rank());
  }

 private:
  const int64_t block_size_;
};

template <typename K>
StatusOr<std::unique_ptr<OpKernel>> MakeBlock(KernelConstruction& c) {
  const auto size = c.AttrOr<int64_t>("block_size", 0);
  return std::make_unique<K>(size);
}

class SpaceToBatchKernel final : public BlockKernel {
 public:
  static constexpr auto Create = MakeBlock<SpaceToBatchKernel>;
  using BlockKernel::BlockKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const Blocks b, Read(c));
    Dims sizes(input.shape().dims().begin(), input.shape().dims().end());
    WEFT_ASSIGN_OR_RETURN(sizes[0], MultiplySizes(sizes[0], b.product));
    for (int d = 0; d < b.rank(); ++d) {
      int64_t padded = 0;
      if (__builtin_add_overflow(sizes[d + 1], b.before[d], &padded) ||
          __builtin_add_overflow(padded, b.after[d], &padded)) {
        return InvalidArgument("Paddings overflow: ", b.before[d], " ", b.after[d]);
      }
      if (padded % b.block[d] != 0) {
        return InvalidArgument("padded_shape[", d, "]=", padded,
                               " is not divisible by block_shape[", d, "]=", b.block[d]);
      }
      sizes[d + 1] = padded / b.block[d];
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    if (shape.num_elements() == 0) return absl::OkStatus();
    ClearElements(output, 0, output->num_elements());
    CopyParts(c, b, input, *output, true, input, output);
    return absl::OkStatus();
  }
};

class BatchToSpaceKernel final : public BlockKernel {
 public:
  static constexpr auto Create = MakeBlock<BatchToSpaceKernel>;
  using BlockKernel::BlockKernel;
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    WEFT_ASSIGN_OR_RETURN(const Blocks b, Read(c));
    Dims sizes(input.shape().dims().begin(), input.shape().dims().end());
    if (sizes[0] % b.product != 0) {
      return InvalidArgument("Input batch dimension (", sizes[0],
                             ") is not divisible by product of block sizes (", b.product, ")");
    }
    sizes[0] /= b.product;
    for (int d = 0; d < b.rank(); ++d) {
      WEFT_ASSIGN_OR_RETURN(const int64_t whole, MultiplySizes(sizes[d + 1], b.block[d]));
      if (b.before[d] > whole || b.after[d] > whole - b.before[d]) {
        return InvalidArgument("cropped_shape[", d, "]=", whole - b.before[d] - b.after[d],
                               " must be non-negative");
      }
      sizes[d + 1] = whole - b.before[d] - b.after[d];
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    if (shape.num_elements() > 0) CopyParts(c, b, *output, input, false, input, output);
    return absl::OkStatus();
  }
};

// Depth [block, block, depth] of a pixel and the block of pixels it stands for.
template <bool kToSpace>
class DepthKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t block, c.Attr<int64_t>("block_size"));
    WEFT_ASSIGN_OR_RETURN(const std::string format, c.Attr<std::string>("data_format"));
    if (block > kMostInBlock) return InvalidArgument("Block size is out of range: ", block);
    if (format != "NHWC")
      // The first words are TensorFlow's, which its tests look for.
      return InvalidArgument("No OpKernel was registered to support Op '", c.op(),
                             "' on a CPU for data_format ", format, ", only for NHWC");
    return std::make_unique<DepthKernel>(block);
  }
  explicit DepthKernel(int64_t block) : block_(block) {}

  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    if (input.rank() != 4)
      return InvalidArgument("Input rank should be 4 instead of: ", input.rank());
    const int64_t square = block_ * block_;
    if (kToSpace ? input.dim(3) % square != 0
                 : input.dim(1) % block_ != 0 || input.dim(2) % block_ != 0) {
      return InvalidArgument("Sizes ", input.shape().ToString(),
                             " should be divisible by block_size ", block_);
    }
    Dims sizes(input.shape().dims().begin(), input.shape().dims().end());
    for (const int axis : {1, 2}) {
      if (kToSpace) {
        WEFT_ASSIGN_OR_RETURN(sizes[axis], MultiplySizes(sizes[axis], block_));
      } else {
        sizes[axis] /= block_;
      }
    }
    if (kToSpace) {
      sizes[3] /= square;
    } else {
      WEFT_ASSIGN_OR_RETURN(sizes[3], MultiplySizes(sizes[3], square));
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    const Shape& deep = kToSpace ? input.shape() : shape;
    const Shape& wide = kToSpace ? shape : input.shape();
    const IndexVector d = StridesOf(deep);
    const IndexVector w = StridesOf(wide);
    const int64_t depth = wide.dim(3);
    StridedCopy copy;
    const auto add = [&](int64_t size, int64_t deep_stride, int64_t wide_stride) {
      copy.AddDim(size, kToSpace ? deep_stride : wide_stride, kToSpace ? wide_stride : deep_stride);
    };
    add(deep.dim(0), d[0], w[0]);
    add(deep.dim(1), d[1], block_ * w[1]);
    add(deep.dim(2), d[2], block_ * w[2]);
    add(block_, block_ * depth, w[1]);
    add(block_, depth, w[2]);
    add(depth, 1, 1);
    Copy(c, std::move(copy), input, output);
    return absl::OkStatus();
  }

 private:
  const int64_t block_;
};

Status UnknownOfInputRank(ShapeContext& c) {
  if (c.input(0).known_rank()) c.set_output(0, PartialShape::UnknownOfRank(c.input(0).rank()));
  return absl::OkStatus();
}

// Channels to pixels, or back, in blocks.
template <bool kToSpace>
Status DepthShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  const StatusOr<int64_t> block = c.Attr<int64_t>("block_size");
  const StatusOr<std::string> format = c.Attr<std::string>("data_format");
  if (input.rank() != 4 || !block.ok() || *block < 2 || *block > kMostInBlock || !format.ok() ||
      *format != "NHWC")
    return UnknownOfInputRank(c);
  PartialShape output = input;
  const auto change = [&](int axis, int64_t factor, bool grows) {
    const int64_t size = input.dim(axis);
    if (size < 0) return;
    // What overflows or does not divide is an error of the kernel.
    const bool is_good = grows ? size <= INT64_MAX / factor : size % factor == 0;
    output.SetDim(axis, !is_good ? -1 : grows ? size * factor : size / factor);
  };
  change(1, *block, kToSpace);
  change(2, *block, kToSpace);
  change(3, *block * *block, !kToSpace);
  c.set_output(0, std::move(output));
  return absl::OkStatus();
}

// The op `name` of the gradient, with this node's further inputs and block size.
GradientFunction InverseOf(const char* name) {
  return [name](GradientContext& c) {
    std::vector<Argument> inputs = {c.gradient()};
    for (int i = 1; i < c.node().num_inputs(); ++i) inputs.push_back(c.input(i));
    AttrMap attrs;
    for (const char* attr : {"block_size", "data_format"}) {
      const auto found = c.node().attrs().find(attr);
      if (found != c.node().attrs().end()) attrs.emplace(attr, found->second);
    }
    c.set_input(0, {c.builder().AddNode(name, inputs, std::move(attrs)), 0});
    return absl::OkStatus();
  };
}

void RegisterDepth(Catalogue& catalogue) {
  const auto add = [&](const char* name, const char* inverse, const char* doc, ShapeFunction shape,
                       KernelFactory factory) {
    catalogue.Add(OpSpec(name)
                      .Doc(doc)
                      .Input("input: T")
                      .Output("output: T")
                      .Attr("T: type")
                      .Attr("block_size: int >= 2")
                      .Attr("data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'")
                      .Shape(std::move(shape))
                      .Gradient(InverseOf(inverse))
                      .Kernel(std::move(factory)));
  };
  add("DepthToSpace", "SpaceToDepth", "Spreads the channels of each pixel over a block of pixels.",
      DepthShape<true>, MakeKernel<DepthKernel<true>>());
  add("SpaceToDepth", "DepthToSpace", "Gathers the channels of a block of pixels in one pixel.",
      DepthShape<false>, MakeKernel<DepthKernel<false>>());
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterDepth(catalogue);
  const auto add = [&](const char* name, const char* inverse, const char* doc, const char* paddings,
                       bool is_nd, KernelFactory factory) {
    OpSpec spec(name);
    const char* type = is_nd ? (paddings[0] == 'c' ? "Tcrops" : "Tpaddings")
                             : (paddings[0] == 'c' ? "Tidx" : "Tpaddings");
    spec.Doc(doc).Input("input: T");
    if (is_nd) spec.Input("block_shape: Tblock_shape").HostInput("block_shape");
    spec.Input(absl::StrCat(paddings, ": ", type))
        .HostInput(paddings)
        .Output("output: T")
        .Attr("T: type");
    if (is_nd) spec.Attr("Tblock_shape: {int32, int64} = DT_INT32");
    const std::string last = absl::StrCat(type, ": {int32, int64} = DT_INT32");
    if (!is_nd && paddings[0] == 'c') spec.Attr("block_size: int >= 2");
    spec.Attr(last);
    if (!is_nd && paddings[0] != 'c') spec.Attr("block_size: int >= 2");
    catalogue.Add(
        spec.Shape(UnknownOfInputRank).Gradient(InverseOf(inverse)).Kernel(std::move(factory)));
  };
  add("SpaceToBatchND", "BatchToSpaceND",
      "Pads dimensions with zeros and moves the positions inside blocks into the batch.",
      "paddings", true, MakeKernel<SpaceToBatchKernel>());
  add("BatchToSpaceND", "SpaceToBatchND",
      "Moves parts of the batch into blocks of dimensions and crops these.", "crops", true,
      MakeKernel<BatchToSpaceKernel>());
  add("SpaceToBatch", "BatchToSpace", "SpaceToBatchND with square blocks of height and width.",
      "paddings", false, MakeKernel<SpaceToBatchKernel>());
  add("BatchToSpace", "SpaceToBatch", "BatchToSpaceND with square blocks of height and width.",
      "crops", false, MakeKernel<BatchToSpaceKernel>());
}

}  // namespace weft::ops::array::space_batch
