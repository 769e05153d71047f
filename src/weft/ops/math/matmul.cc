// SPDX-License-Identifier: Apache-2.0
// The product of two matrices.
#include "weft/ops/gradients.h"
#include "weft/ops/matrix_product.h"
#include "weft/ops/work_sharer.h"

namespace weft::ops::math::matmul {
namespace {

using MatMulTypes = TypeList<float, double, Half, Bfloat16, int16_t, int32_t, int64_t, uint8_t,
                             uint16_t, uint32_t, uint64_t, Complex64, Complex128>;

template <typename T>
class MatMulKernel final : public OpKernel {
 public:
  explicit MatMulKernel(KernelConstruction& k)
      : transpose_a_(k.AttrOr<bool>("transpose_a", false)),
        transpose_b_(k.AttrOr<bool>("transpose_b", false)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& a = c.input(0);
    const Tensor& b = c.input(1);
    WEFT_RETURN_IF_ERROR(CheckProduct(a, b, transpose_a_, transpose_b_));
    MatrixProduct<T> p = ProductOf<T>(a, b, transpose_a_, transpose_b_);
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, Shape{p.m, p.n}));
    p.c = out->data<T>();
    if (p.m * p.n * p.k < 1 << 16) {
      Multiply(p);
      return absl::OkStatus();
    }
    Multiply<T>(p, {}, SharerOf(c));
    return absl::OkStatus();
  }

 private:
  const bool transpose_a_;
  const bool transpose_b_;
};

Status MatMulShape(ShapeContext& c) {
  WEFT_ASSIGN_OR_RETURN(PartialShape a, c.WithRank(0, 2));
  WEFT_ASSIGN_OR_RETURN(PartialShape b, c.WithRank(1, 2));
  WEFT_ASSIGN_OR_RETURN(bool transpose_a, c.Attr<bool>("transpose_a"));
  WEFT_ASSIGN_OR_RETURN(bool transpose_b, c.Attr<bool>("transpose_b"));
  const int64_t inner_a = a.dim(transpose_a ? 0 : 1);
  const int64_t inner_b = b.dim(transpose_b ? 1 : 0);
  if (inner_a >= 0 && inner_b >= 0 && inner_a != inner_b) {
    return InvalidArgument("Dimensions must be equal, but are ", inner_a, " and ", inner_b,
                           " for MatMul of ", a.ToString(), " and ", b.ToString());
  }
  c.set_output(0, PartialShape{a.dim(transpose_a ? 1 : 0), b.dim(transpose_b ? 0 : 1)});
  return absl::OkStatus();
}

Status MatMulGradient(GradientContext& c) {
  WEFT_ASSIGN_OR_RETURN(bool transpose_a, c.Attr<bool>("transpose_a"));
  WEFT_ASSIGN_OR_RETURN(bool transpose_b, c.Attr<bool>("transpose_b"));
  const Endpoint a = Conjugate(c, c.input(0));
  const Endpoint b = Conjugate(c, c.input(1));
  const Endpoint g = c.gradient();
  const auto product = [&](int input, Endpoint x, Endpoint y, bool tx, bool ty) {
    c.set_input(
        input,
        c.Op("MatMul", {x, y},
             {{"transpose_a", tx}, {"transpose_b", ty}, {input == 0 ? "grad_a" : "grad_b", true}}));
  };
  if (!transpose_a && !transpose_b) {
    product(0, g, b, false, true);
    product(1, a, g, true, false);
  } else if (!transpose_a) {
    product(0, g, b, false, false);
    product(1, g, a, true, false);
  } else if (!transpose_b) {
    product(0, b, g, false, true);
    product(1, a, g, false, false);
  } else {
    product(0, b, g, true, true);
    product(1, g, a, true, true);
  }
  return absl::OkStatus();
}

template <typename... Ts>
void AddKernels(OpSpec& spec, TypeList<Ts...>) {
  (spec.Kernel({.types = {{"T", {DTypeOf<Ts>}}}, .factory = MakeKernel<MatMulKernel<Ts>>()}), ...);
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec spec("MatMul");
  spec.Doc(
          "The product of two matrices, each maybe transposed first. Their inner sizes must agree.")
      .Input("a: T")
      .Input("b: T")
      .Output("product: T")
      .Attr("transpose_a: bool = false")
      .Attr("transpose_b: bool = false")
      .Attr(
          "T: {bfloat16, half, float, double, int32, int64, uint8, uint16, uint32, uint64, "
          "complex64, "
          "complex128}")
      .Attr("grad_a: bool = false")
      .Attr("grad_b: bool = false")
      .Traits({.fuses_as = FusesAs::kProduct})
      .Shape(MatMulShape)
      .Gradient(MatMulGradient);
  AddKernels(spec, MatMulTypes());
  catalogue.Add(std::move(spec));
}

}  // namespace weft::ops::math::matmul
