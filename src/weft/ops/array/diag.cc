// SPDX-License-Identifier: Apache-2.0
// Diagonals of tensors: a tensor of rank k and one of rank 2k that is zero
// elsewhere.
#include <memory>

#include "weft/kernel/op_spec.h"
#include "weft/ops/elements.h"

namespace weft::ops::array::diag {
namespace {

using Types = TypeList<Bfloat16, Half, float, double, int32_t, int64_t, Complex64, Complex128>;

class DiagKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& diagonal = c.input(0);
    if (diagonal.rank() < 1) return InvalidArgument("Input must be at least rank 1, got 0");
    Dims sizes(diagonal.shape().dims().begin(), diagonal.shape().dims().end());
    sizes.insert(sizes.end(), diagonal.shape().dims().begin(), diagonal.shape().dims().end());
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    ClearElements(out, 0, out->num_elements());
    const int64_t n = diagonal.num_elements();
    for (int64_t i = 0; i < n; ++i) CopyElements(diagonal, i, 1, out, i * (n + 1));
    return absl::OkStatus();
  }
};

class DiagPartKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor& input = c.input(0);
    const int half = input.rank() / 2;
    if (input.rank() % 2 != 0) {
      return InvalidArgument("The rank of the tensor should be even and positive, got shape ",
                             input.shape().ToString());
    }
    Dims sizes;
    for (int d = 0; d < half; ++d) {
      if (input.dim(d) != input.dim(d + half)) {
        return InvalidArgument("Invalid shape ", input.shape().ToString(), ": dimensions ", d,
                               " and ", d + half, " do not match.");
      }
      sizes.push_back(input.dim(d));
    }
    WEFT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(sizes));
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    const int64_t n = out->num_elements();
    for (int64_t i = 0; i < n; ++i) CopyElements(input, i * (n + 1), 1, out, i);
    return absl::OkStatus();
  }
};

Status DiagShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(const PartialShape diagonal, c.WithRankAtLeast(0, 1));
  if (!diagonal.known_rank()) return absl::OkStatus();
  Dims sizes(diagonal.dims().begin(), diagonal.dims().end());
  sizes.insert(sizes.end(), diagonal.dims().begin(), diagonal.dims().end());
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, PartialShape::Make(sizes));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

Status DiagPartShape(ShapeContext& c) {
  const PartialShape& input = c.input(0);
  if (!input.known_rank()) return absl::OkStatus();
  if (input.rank() < 2 || input.rank() % 2 != 0) {
    return InvalidArgument("Input must have even and non-zero rank, input rank is ", input.rank());
  }
  const int half = input.rank() / 2;
  PartialShape first = PartialShape::UnknownOfRank(half);
  PartialShape second = first;
  for (int d = 0; d < half; ++d) {
    first.SetDim(d, input.dim(d));
    second.SetDim(d, input.dim(d + half));
  }
  WEFT_ASSIGN_OR_RETURN(PartialShape shape, first.MergeWith(second));
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

void Add(Catalogue& catalogue, const char* name, const char* other, const char* documentation,
         const char* input, const char* output, ShapeFunction shape, KernelFactory factory) {
  OpSpec spec(name);
  spec.Doc(documentation)
      .Input(input)
      .Output(output)
      .Attr(
          "T: {bfloat16, half, float, double, int32, int64, complex64, "
          "complex128}")
      .Shape(std::move(shape))
      .Gradient([other](GradientContext& c) {
        c.set_input(0, c.Op(other, {c.gradient()}));
        return absl::OkStatus();
      })
      .Kernel({.types = {{"T", DTypesOf(Types())}}, .factory = std::move(factory)});
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  Add(catalogue, "Diag", "DiagPart",
      "A tensor of twice the rank with `diagonal` where both halves of the "
      "index are the same, and "
      "zeros elsewhere.",
      "diagonal: T", "output: T", DiagShape, MakeKernel<DiagKernel>());
  Add(catalogue, "DiagPart", "Diag",
      "The elements at which both halves of the index are the "
      "same.\nInvalidArgument unless both "
      "halves of the shape are the same.",
      "input: T", "diagonal: T", DiagPartShape, MakeKernel<DiagPartKernel>());
}

}  // namespace weft::ops::array::diag
