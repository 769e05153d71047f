// SPDX-License-Identifier: Apache-2.0
// MirrorPad: a border that mirrors what lies inside it, and its gradient.
#include <memory>
#include <vector>

#include "weft/kernel/op_spec.h"
#include "weft/ops/array/strided_kernel.h"
#include "weft/ops/elements.h"
#include "weft/ops/index_values.h"

namespace weft::ops::array::mirror_pad {
namespace {

// For each position of the padded tensor, dimension by dimension: the offset of what stands there
// in the inner tensor.
struct Mirror {
  Dims padded;
  std::vector<std::vector<int64_t>> offsets;
};

// `sizes` are of the inner tensor. 1 is the distance from the edge to its mirror image for REFLECT.
StatusOr<Mirror> MakeMirror(const Shape& inner, const Tensor& paddings, int64_t distance) {
  const IndexVector strides = StridesOf(inner);
  Mirror mirror;
  for (int i = 0; i < inner.rank(); ++i) {
    const int64_t before = IndexAt(paddings, 2 * i);
    const int64_t after = IndexAt(paddings, 2 * i + 1);
    const int64_t size = inner.dim(i);
    if (before < 0 || after < 0)
      return InvalidArgument("paddings must be non-negative: ", before, ", ", after);
    if (before > size - distance || after > size - distance) {
      return InvalidArgument("paddings must be ", distance == 1 ? "less" : "no greater",
                             " than the dimension size: ", before, ", ", after, " not ",
                             distance == 1 ? "less" : "no greater", " than ", size);
    }
    std::vector<int64_t> line;
    for (int64_t at = -before; at < size + after; ++at) {
      int64_t from = at;
      if (at < 0) from = -at - 1 + distance;
      if (at >= size) from = 2 * size - at - 1 - distance;
      line.push_back(from * strides[i]);
    }
    mirror.padded.push_back(static_cast<int64_t>(line.size()));
    mirror.offsets.push_back(std::move(line));
  }
  return mirror;
}

// Calls visit(padded position, inner offset) for all positions.
template <typename Visit>
void ForEach(const Mirror& mirror, const Visit& visit) {
  const size_t rank = mirror.padded.size();
  int64_t total = 1;
  for (const int64_t size : mirror.padded) total *= size;
  IndexVector at(rank, 0);
  int64_t offset = 0;
  for (size_t i = 0; i < rank && total > 0; ++i) offset += mirror.offsets[i][0];
  for (int64_t position = 0; position < total; ++position) {
    visit(position, offset);
    for (size_t i = rank; i-- > 0;) {
      offset -= mirror.offsets[i][at[i]];
      if (++at[i] == mirror.padded[i]) at[i] = 0;
      offset += mirror.offsets[i][at[i]];
      if (at[i] != 0) break;
    }
  }
}

StatusOr<int64_t> DistanceOf(KernelConstruction& c) {
  WEFT_ASSIGN_OR_RETURN(const std::string mode, c.Attr<std::string>("mode"));
  return mode == "REFLECT" ? 1 : 0;
}

Status CheckPaddings(const Tensor& paddings, const Shape& input) {
  if (paddings.shape().IsMatrix() && paddings.dim(1) == 2 && paddings.dim(0) == input.rank()) {
    return absl::OkStatus();
  }
  return InvalidArgument(
      "paddings must be a matrix with 2 columns and a row for each dimension of the input: ",
      paddings.shape().ToString(), " ", input.ToString());
}

class MirrorPadKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t distance, DistanceOf(c));
    return std::make_unique<MirrorPadKernel>(distance);
  }
  explicit MirrorPadKernel(int64_t distance) : distance_(distance) {}
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    WEFT_RETURN_IF_ERROR(CheckPaddings(c.input(1), input.shape()));
    WEFT_ASSIGN_OR_RETURN(const Mirror mirror, MakeMirror(input.shape(), c.input(1), distance_));
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(mirror.padded));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    VisitElement(input.dtype(), [&]<typename T>() {
      const T* from = input.bits<T>();
      T* to = output->bits<T>();
      ForEach(mirror, [&](int64_t position, int64_t offset) { to[position] = from[offset]; });
    });
    return absl::OkStatus();
  }

 private:
  const int64_t distance_;
};

// Every padded element's gradient goes to the inner element it mirrors.
class MirrorPadGradKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& c) {
    WEFT_ASSIGN_OR_RETURN(const int64_t distance, DistanceOf(c));
    return std::make_unique<MirrorPadGradKernel>(distance);
  }
  explicit MirrorPadGradKernel(int64_t distance) : distance_(distance) {}
  Status Compute(KernelContext& c) override {
    const Tensor& gradient = c.input(0);
    const Tensor& paddings = c.input(1);
    WEFT_RETURN_IF_ERROR(CheckPaddings(paddings, gradient.shape()));
    Dims sizes;
    for (int i = 0; i < gradient.rank(); ++i) {
      const int64_t before = IndexAt(paddings, 2 * i);
      const int64_t after = IndexAt(paddings, 2 * i + 1);
      if (before < 0 || after < 0)
        return InvalidArgument("Paddings must be non-negative: ", before, ", ", after);
      if (before > gradient.dim(i) || after > gradient.dim(i) - before) {
        return InvalidArgument("Total paddings must be less than the input dimension size: ",
                               before, ", ", after, " vs. ", gradient.dim(i));
      }
      sizes.push_back(gradient.dim(i) - before - after);
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(const Mirror mirror, MakeMirror(shape, paddings, distance_));
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.AllocateOutput(0, shape));
    ClearElements(output, 0, output->num_elements());
    const bool known = VisitDType(gradient.dtype(), Numbers(), [&]<typename T>() {
      const T* from = gradient.data<T>();
      T* to = output->data<T>();
      ForEach(mirror, [&](int64_t position, int64_t offset) {
        to[offset] = static_cast<T>(to[offset] + from[position]);
      });
    });
    return known ? absl::OkStatus()
                 : Unimplemented("MirrorPadGrad of ", DTypeName(gradient.dtype()));
  }

 private:
  const int64_t distance_;
};

// sign is 1 where paddings grow the shape and -1 where they shrink it.
Status PaddedShape(ShapeContext& c, int64_t sign) {
  const PartialShape& input = c.input(0);
  WEFT_RETURN_IF_ERROR(c.WithRank(1, 2).status());
  if (!input.known_rank()) return absl::OkStatus();
  PartialShape out = PartialShape::UnknownOfRank(input.rank());
  const Tensor* paddings = c.constant(1);
  if (paddings != nullptr && paddings->num_elements() != 2 * input.rank()) {
    return InvalidArgument("paddings must have a row for each of ", input.rank(), " dimensions");
  }
  for (int i = 0; i < input.rank() && paddings != nullptr; ++i) {
    if (input.dim(i) < 0) continue;
    int64_t total = 0;
    if (__builtin_add_overflow(IndexAt(*paddings, 2 * i), IndexAt(*paddings, 2 * i + 1), &total) ||
        __builtin_add_overflow(input.dim(i), sign * total, &total) || total < 0) {
      return InvalidArgument("Paddings do not fit dimension ", i, " of ", input.ToString());
    }
    out.SetDim(i, total);
  }
  c.set_output(0, std::move(out));
  return absl::OkStatus();
}

Status MirrorGradient(GradientContext& c, const char* op) {
  WEFT_ASSIGN_OR_RETURN(const std::string mode, c.Attr<std::string>("mode"));
  c.set_input(0, c.Op(op, {c.gradient(), c.input(1)}, {{"mode", mode}}));
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(OpSpec("MirrorPad")
                    .Doc("Pads with the mirror image of what lies inside: without the edge itself "
                         "(REFLECT) or "
                         "with it (SYMMETRIC).")
                    .Input("input: T")
                    .Input("paddings: Tpaddings")
                    .HostInput("paddings")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("Tpaddings: {int32, int64} = DT_INT32")
                    .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
                    .Shape([](ShapeContext& c) { return PaddedShape(c, 1); })
                    .Gradient([](GradientContext& c) { return MirrorGradient(c, "MirrorPadGrad"); })
                    .Kernel(MakeKernel<MirrorPadKernel>()));
  catalogue.Add(OpSpec("MirrorPadGrad")
                    .Doc("The gradient of MirrorPad: adds the border to what it mirrors.")
                    .Input("input: T")
                    .Input("paddings: Tpaddings")
                    .HostInput("paddings")
                    .Output("output: T")
                    .Attr("T: type")
                    .Attr("Tpaddings: {int32, int64} = DT_INT32")
                    .Attr("mode: {'REFLECT', 'SYMMETRIC'}")
                    .Shape([](ShapeContext& c) { return PaddedShape(c, -1); })
                    .Gradient([](GradientContext& c) { return MirrorGradient(c, "MirrorPad"); })
                    .Kernel(MakeKernel<MirrorPadGradKernel>()));
}

}  // namespace weft::ops::array::mirror_pad
