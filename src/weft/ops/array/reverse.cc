// SPDX-License-Identifier: Apache-2.0
// Turning dimensions around: ReverseV2, Reverse, ReverseSequence and Roll.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::reverse {
namespace {

using AxisFlags = absl::InlinedVector<bool, 8>;

Status ReverseAxes(KernelContext& c, const AxisFlags& turned) {
  const Tensor& input = c.input(0);
  const IndexVector strides = StridesOf(input.shape());
  StridedCopy copy;
  bool same = true;
  for (int i = 0; i < input.rank(); ++i) {
    const int64_t size = input.dim(i);
    copy.AddDim(size, turned[i] ? -strides[i] : strides[i], 0);
    if (turned[i]) copy.source_offset += (size - 1) * strides[i];
    same = same && (!turned[i] || size <= 1);
  }
  if (same || input.num_elements() == 0) {
    c.SetOutput(0, input);
    return absl::OkStatus();
  }
  WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
  copy.MakeTargetDense();
  Copy(c, std::move(copy), input, output);
  return absl::OkStatus();
}

class ReverseV2Kernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& axes = c.input(1);
    const int rank = c.input(0).rank();
    if (axes.rank() != 1) return InvalidArgument("'dims' must be 1-dimension, not ", axes.rank());
    AxisFlags turned(rank, false);
    for (int64_t i = 0; i < axes.num_elements(); ++i) {
      const int64_t value = IndexAt(axes, i);
      const int64_t axis = value < 0 ? value + rank : value;
      if (axis < 0 || axis >= rank) {
        return InvalidArgument("'axis'[", i, "] = ", value, " is out of valid range [0, ",
                               rank - 1);
      }
      if (turned[axis]) return InvalidArgument("axis ", axis, " specified more than once.");
      turned[axis] = true;
    }
    return ReverseAxes(c, turned);
  }
};

class ReverseKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& dims = c.input(1);
    if (dims.rank() != 1 || dims.num_elements() != c.input(0).rank()) {
      return InvalidArgument(
          "'dims' must have the same number of values as 'input' has dimensions. 'input' has ",
          c.input(0).rank(), " 'dims' has ", dims.num_elements(), " values");
    }
    const auto flags = dims.span<bool>();
    return ReverseAxes(c, AxisFlags(flags.begin(), flags.end()));
  }
};

// For each batch the first seq_lengths[batch] positions of seq_dim are turned around.
class ReverseSequenceKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t batch_dim, c.Attr<int64_t>("batch_dim"));
    WEFT_ASSIGN_OR_RETURN(const int64_t seq_dim, c.Attr<int64_t>("seq_dim"));
    return std::make_unique<ReverseSequenceKernel>(batch_dim, seq_dim);
  }
  ReverseSequenceKernel(int64_t batch_dim, int64_t seq_dim)
      : batch_dim_(batch_dim), seq_dim_(seq_dim) {}

  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    const Tensor& lengths = c.input(1);
    WEFT_RETURN_IF_ERROR(Check(input, lengths));
    const int batch_axis = static_cast<int>(batch_dim_);
    const int seq_axis = static_cast<int>(seq_dim_);
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
    const IndexVector strides = StridesOf(input.shape());
    for (int64_t b = 0; b < input.dim(batch_axis); ++b) {
      const int64_t length = IndexAt(lengths, b);
      StridedCopy turned;
      StridedCopy rest;
      for (int i = 0; i < input.rank(); ++i) {
        const int64_t size = i == batch_axis ? 1 : input.dim(i);
        turned.AddDim(i == seq_axis ? length : size, i == seq_axis ? -strides[i] : strides[i],
                      strides[i]);
        rest.AddDim(i == seq_axis ? size - length : size, strides[i], strides[i]);
      }
      const int64_t start = b * strides[batch_axis];
      turned.source_offset = start + (length - 1) * strides[seq_axis];
      turned.target_offset = start;
      rest.source_offset = rest.target_offset = start + length * strides[seq_axis];
      Copy(c, std::move(turned), input, output);
      Copy(c, std::move(rest), input, output);
    }
    return absl::OkStatus();
  }

 private:
  Status Check(const Tensor& input, const Tensor& lengths) const {
    if (batch_dim_ == seq_dim_) return InvalidArgument("batch_dim == seq_dim == ", seq_dim_);
    if (seq_dim_ < 0 || seq_dim_ >= input.rank()) {
      return InvalidArgument("seq_dim must be < input rank ( ", seq_dim_, " vs. ", input.rank(),
                             ")");
    }
    if (batch_dim_ < 0 || batch_dim_ >= input.rank()) {
      return InvalidArgument("batch_dim must be < input rank ( ", batch_dim_, " vs. ", input.rank(),
                             ")");
    }
    if (lengths.rank() != 1)
      return InvalidArgument("seq_lens input must be 1-dim, not ", lengths.rank());
    if (lengths.dim(0) != input.dim(static_cast<int>(batch_dim_))) {
      return InvalidArgument("Length of seq_lens != input.dims(", batch_dim_, "), (",
                             lengths.dim(0), " vs. ", input.dim(static_cast<int>(batch_dim_)), ")");
    }
    for (int64_t i = 0; i < lengths.num_elements(); ++i) {
      const int64_t length = IndexAt(lengths, i);
      if (length < 0) return InvalidArgument("seq_lens(", i, ") < 0");
      if (length > input.dim(static_cast<int>(seq_dim_))) {
        return InvalidArgument("seq_lens(", i, ") > input.dims(", seq_dim_, ")");
      }
    }
    return absl::OkStatus();
  }

  const int64_t batch_dim_;
  const int64_t seq_dim_;
};

class RollKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    const Tensor& shift = c.input(1);
    const Tensor& axis = c.input(2);
    const int rank = input.rank();
    if (rank < 1) return InvalidArgument("input must be 1-D or higher");
    if (shift.rank() > 1) {
      return InvalidArgument("shift must be a scalar or a 1-D vector. Found: ",
                             shift.shape().ToString());
    }
    if (axis.rank() > 1) {
      return InvalidArgument("axis must be a scalar or a 1-D vector. Found: ",
                             axis.shape().ToString());
    }
    if (shift.shape() != axis.shape())
      return InvalidArgument("shift and axis must have the same size");
    IndexVector total(rank, 0);
    for (int64_t i = 0; i < axis.num_elements(); ++i) {
      const int64_t value = IndexAt(axis, i);
      const int64_t at = value < 0 ? value + rank : value;
      if (at < 0 || at >= rank) return InvalidArgument("axis ", value, " is out of range");
      const int64_t size = std::max<int64_t>(1, input.dim(static_cast<int>(at)));
      total[at] = ((total[at] + IndexAt(shift, i) % size) % size + size) % size;
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, input.shape()));
    if (input.num_elements() == 0) return absl::OkStatus();
    const IndexVector strides = StridesOf(input.shape());
    CopyBoxes(c, input, total, strides, 0, StridedCopy(), output);
    return absl::OkStatus();
  }

 private:
  // Each shifted dimension has two parts: [0, size - shift) moves up and the rest to the front.
  static void CopyBoxes(const KernelContext& c, const Tensor& input, const IndexVector& shift,
                        const IndexVector& strides, int dim, const StridedCopy& box,
                        Tensor* output) {
    if (dim == input.rank()) {
      Copy(c, box, input, output);
      return;
    }
    const int64_t size = input.dim(dim);
    const auto part = [&](int64_t from, int64_t to, int64_t count) {
      StridedCopy next = box;
      next.source_offset += from * strides[dim];
      next.target_offset += to * strides[dim];
      next.AddDim(count, strides[dim], strides[dim]);
      CopyBoxes(c, input, shift, strides, dim + 1, next, output);
    };
    part(0, shift[dim], size - shift[dim]);
    if (shift[dim] > 0) part(size - shift[dim], 0, shift[dim]);
  }
};

Status SameWithFlags(ShapeContext& c) {
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 1).status());
  c.set_output(0, c.input(0));
  return absl::OkStatus();
}

Status WithSecondInput(GradientContext& c) {
  c.set_input(0, c.Op(c.node().op(), {c.gradient(), c.input(1)}));
  return absl::OkStatus();
}

Status ReverseSequenceGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(const int64_t batch_dim, c.Attr<int64_t>("batch_dim"));
  WEFT_ASSIGN_OR_RETURN(const int64_t seq_dim, c.Attr<int64_t>("seq_dim"));
  c.set_input(0, c.Op("ReverseSequence", {c.gradient(), c.input(1)},
                      {{"batch_dim", batch_dim}, {"seq_dim", seq_dim}}));
  return absl::OkStatus();
}

Status RollGradient(GradientContext& c) {
  c.set_input(0, c.Op("Roll", {c.gradient(), c.Op("Neg", {c.input(1)}), c.input(2)}));
  return absl::OkStatus();
}

void RegisterReverse(Catalogue& catalogue) {
  constexpr const char* kTypes[] = {
      "T: {uint8, int8, uint16, int16, int32, uint32, int64, uint64, bool, bfloat16, half, float, "
      "double, "
      "complex64, complex128, string}",
      "T: {uint8, int8, uint16, int16, uint32, int32, uint64, int64, bool, bfloat16, half, float, "
      "double, "
      "complex64, complex128, string}"};
  catalogue.Add(
      OpSpec("ReverseV2")
          .Doc("Turns the dimensions in `axis` around; negative ones count from the end.\n"
               "InvalidArgument for an axis out of range or given twice.")
          .Input("tensor: T")
          .Input("axis: Tidx")
          .HostInput("axis")
          .Output("output: T")
          .Attr("Tidx: {int32, int64} = DT_INT32")
          .Attr(kTypes[0])
          .Shape(SameWithFlags)
          .Gradient(WithSecondInput)
          .Kernel(MakeKernel<ReverseV2Kernel>()));
  catalogue.Add(OpSpec("Reverse")
                    .Doc("Turns the dimensions around whose flag in `dims` is true.")
                    .Input("tensor: T")
                    .Input("dims: bool")
                    .HostInput("dims")
                    .Output("output: T")
                    .Attr(kTypes[1])
                    .Shape(SameWithFlags)
                    .Gradient(WithSecondInput)
                    .Kernel(MakeKernel<ReverseKernel>()));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterReverse(catalogue);
  catalogue.Add(
      OpSpec("ReverseSequence")
          .Doc("Turns the first seq_lengths[i] positions of `seq_dim` around in slice i of "
               "`batch_dim`.")
          .Input("input: T")
          .Input("seq_lengths: Tlen")
          .Output("output: T")
          .Attr("seq_dim: int")
          .Attr("batch_dim: int = 0")
          .Attr("T: type")
          .Attr("Tlen: {int32, int64} = DT_INT64")
          .Shape(SameWithFlags)
          .Gradient(ReverseSequenceGradient)
          .Kernel(MakeKernel<ReverseSequenceKernel>()));
  catalogue.Add(OpSpec("Roll")
                    .Doc("Shifts elements along each of `axis` by `shift`; what leaves at one end "
                         "enters at the "
                         "other.")
                    .Input("input: T")
                    .Input("shift: Tshift")
                    .HostInput("shift")
                    .Input("axis: Taxis")
                    .HostInput("axis")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("Tshift: {int32, int64}")
                    .Attr("Taxis: {int32, int64}")
                    .Shape(shapes::SameAsInput)
                    .Gradient(RollGradient)
                    .Kernel(MakeKernel<RollKernel>()));
}

}  // namespace weft::ops::array::reverse
