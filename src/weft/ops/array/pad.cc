// SPDX-License-Identifier: Apache-2.0
// Pad and PadV2: a border of zeros or of a value.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::pad {
namespace {

class PadKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    const Tensor& paddings = c.input(1);
    if (!paddings.shape().IsMatrix() || paddings.dim(1) != 2) {
      return InvalidArgument("paddings must be a matrix with 2 columns: ",
                             paddings.shape().ToString());
    }
    if (paddings.dim(0) != input.rank()) {
      return InvalidArgument("The first dimension of paddings must be the rank of inputs",
                             paddings.shape().ToString(), " ", input.shape().ToString());
    }
    const Tensor* value = c.num_inputs() > 2 ? &c.input(2) : nullptr;
    if (value != nullptr && !value->shape().IsScalar()) {
      return InvalidArgument("constant_values must be a scalar. Found: ",
                             value->shape().ToString());
    }
    Dims sizes(input.rank());
    for (int i = 0; i < input.rank(); ++i) {
      const int64_t before = IndexAt(paddings, 2 * i);
      const int64_t after = IndexAt(paddings, 2 * i + 1);
      if (before < 0 || after < 0) {
        return InvalidArgument("Paddings must be non-negative: ", before, " ", after);
      }
      if (__builtin_add_overflow(before, after, &sizes[i]) ||
          __builtin_add_overflow(sizes[i], input.dim(i), &sizes[i])) {
        return InvalidArgument("Paddings overflow: ", before, " ", after);
      }
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    if (shape == input.shape()) {
      c.SetOutput(0, input);
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    FillAll(value, output);
    const IndexVector from = StridesOf(input.shape());
    const IndexVector to = StridesOf(shape);
    StridedCopy copy;
    for (int i = 0; i < input.rank(); ++i) {
      copy.AddDim(input.dim(i), from[i], to[i]);
      copy.target_offset += IndexAt(paddings, 2 * i) * to[i];
    }
    Copy(c, std::move(copy), input, output);
    return absl::OkStatus();
  }

 private:
  static void FillAll(const Tensor* value, Tensor* output) {
    if (value == nullptr) {
      ClearElements(output, 0, output->num_elements());
      return;
    }
    VisitElement(output->dtype(), [&]<typename T>() {
      FillElements(*value->bits<T>(), output->num_elements(), output->bits<T>());
    });
  }
};

Status PadShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  WEFT_ASSIGN_OR_RETURN(const PartialShape paddings, c.WithRank(1, 2));
  if (paddings.dim(1) >= 0 && paddings.dim(1) != 2) {
    return InvalidArgument("paddings must have 2 columns, got ", paddings.dim(1));
  }
  const int64_t rank = input.known_rank() ? input.rank() : paddings.dim(0);
  if (paddings.dim(0) >= 0 && paddings.dim(0) != rank) {
    return InvalidArgument("paddings must have a row for each of ", rank, " dimensions, got ",
                           paddings.dim(0));
  }
  if (rank < 0 || rank > kMaxRank) return absl::OkStatus();
  PartialShape out = PartialShape::UnknownOfRank(static_cast<int>(rank));
  for (int i = 0; i < rank && c.constant(1) != nullptr; ++i) {
    const int64_t before = IndexAt(*c.constant(1), 2 * i);
    const int64_t after = IndexAt(*c.constant(1), 2 * i + 1);
    if (before < 0 || after < 0)
      return InvalidArgument("Paddings must be non-negative: ", before, " ", after);
    int64_t size = 0;
    if (input.dim(i) >= 0 && !__builtin_add_overflow(before, after, &size) &&
        !__builtin_add_overflow(size, input.dim(i), &size)) {
      out.SetDim(i, size);
    }
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

// The gradient without its border.
Status PadGradient(GradientContext& c) {
  GraphBuilder& b = c.builder();
  const DType index = c.node().input_type(1).dtype;
  const Endpoint shape = c.Op("Shape", {c.input(0)}, {{"out_type", index}});
  const Endpoint first_column =
      c.Op("GatherV2", {c.input(1), b.Scalar<int32_t>(0), b.Scalar<int32_t>(1)});
  c.set_input(0, c.Op("Slice", {c.gradient(), first_column, shape}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Pad")
          .Doc("Puts `paddings[i, 0]` zeros before and `paddings[i, 1]` after dimension i.\n"
               "InvalidArgument for a negative padding.")
          .Input("input: T")
          .Input("paddings: Tpaddings")
          .HostInput("paddings")
          .Output("output: T")
          .Attr("T: type")
          .Attr("Tpaddings: {int32, int64} = DT_INT32")
          .Shape(PadShape)
          .Gradient(PadGradient)
          .Kernel(MakeKernel<PadKernel>()));
  catalogue.Add(OpSpec("PadV2")
                    .Doc("Pad with copies of the scalar `constant_values` instead of zeros.")
                    .Input("input: T")
                    .Input("paddings: Tpaddings")
                    .HostInput("paddings")
                    .Input("constant_values: T")
                    .HostInput("constant_values")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("Tpaddings: {int32, int64} = DT_INT32")
                    .Shape(PadShape)
                    .Gradient(PadGradient)
                    .Kernel(MakeKernel<PadKernel>()));
}

}  // namespace weft::ops::array::pad
