// SPDX-License-Identifier: Apache-2.0
// Gradients of element-wise functions, written with the function's output y.
#include <memory>
#include <utility>

#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::unary_grad {
namespace {

using RealAndComplexFloats = TypeList<float, double, Half, Bfloat16, Complex64, Complex128>;
using E = Endpoint;
using G = GradientContext&;

// Inputs of as many elements, the output of the first one's shape: nothing is broadcast.
class GradKernel final : public OpKernel {
 public:
  explicit GradKernel(const TileBody& tile) : tile_(tile), size_(DTypeSize(tile.input)) {}

  Status Compute(KernelContext& c) override {
    const Tensor& y = c.input(0);
    const Tensor& dy = c.input(1);
    if (y.num_elements() != dy.num_elements()) {
      return InvalidArgument(
          "The two arguments to a cwise op must have same number of elements, got ",
          y.num_elements(), " and ", dy.num_elements());
    }
    const std::byte *a = y.bytes(), *b = dy.bytes();
    WEFT_ASSIGN_OR_RETURN(Tensor * output, c.ForwardOrAllocateOutput(0, 1, 0, y.shape()));
    std::byte* out = output->bytes();
    c.ParallelFor(output->num_elements(), kGrain, [&](int64_t begin, int64_t end) {
      const size_t at = static_cast<size_t>(begin) * size_;
      tile_.run(a + at, 1, b + at, 1, out + at, end - begin);
    });
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kGrain = 32768;  // elements that one thread should at least get
  const TileBody tile_;
  const size_t size_;
};

E Times(G c, E a, E b) { return c.Op("Mul", {a, b}); }
E Scaled(G c, double factor, E a) { return Times(c, ScalarOf(c, TypeOf(a), factor), a); }

Status SigmoidGradGradient(G c) {
  const E y = Conjugate(c, c.input(0));
  const E both = Times(c, c.gradient(), Conjugate(c, c.input(1)));
  c.set_input(0, c.Op("Sub", {both, Times(c, Scaled(c, 2, both), y)}));
  c.set_input(1, c.Op("SigmoidGrad", {y, c.gradient()}));
  return absl::OkStatus();
}
Status TanhGradGradient(G c) {
  const E y = Conjugate(c, c.input(0));
  c.set_input(0, Times(c, Scaled(c, -2, Times(c, c.gradient(), Conjugate(c, c.input(1)))), y));
  c.set_input(1, c.Op("TanhGrad", {y, c.gradient()}));
  return absl::OkStatus();
}
Status SqrtGradGradient(G c) {
  const E ratio = c.Op("RealDiv", {c.gradient(), c.input(0)});
  c.set_input(0, Times(c, c.Op("Neg", {Conjugate(c, ratio)}), c.output(0)));
  c.set_input(1, Scaled(c, 0.5, ratio));
  return absl::OkStatus();
}
Status RsqrtGradGradient(G c) {
  const E y = Conjugate(c, c.input(0));
  const E g = Conjugate(c, c.gradient());
  c.set_input(0, Times(c, Times(c, Scaled(c, -1.5, g), c.input(1)), c.Op("Square", {y})));
  c.set_input(1, c.Op("RsqrtGrad", {y, c.gradient()}));
  return absl::OkStatus();
}
GradientFunction ReciprocalGradGradient(const char* op) {
  return [op](G c) {
    const E y = Conjugate(c, c.input(0));
    const E g = Conjugate(c, c.gradient());
    c.set_input(0, Times(c, Times(c, Scaled(c, -2, g), c.input(1)), y));
    c.set_input(1, c.Op(op, {y, c.gradient()}));
    return absl::OkStatus();
  };
}

template <typename Op>
void AddGrad(Catalogue& catalogue, const char* name, const char* doc, GradientFunction gradient) {
  OpSpec spec(name);
  spec.Doc(doc).Input("y: T").Input("dy: T").Output("z: T");
  spec.Attr("T: {bfloat16, half, float, double, complex64, complex128}");
  spec.Shape(shapes::SameAsInput).Gradient(std::move(gradient));
  for (const TileBody& tile : BinaryTiles<Op>(RealAndComplexFloats())) {
    spec.Tile(tile);
    spec.Kernel({.types = {{"T", {tile.input}}},
                 .factory = [tile](KernelConstruction&) -> StatusOr<std::unique_ptr<OpKernel>> {
                   return std::make_unique<GradKernel>(tile);
                 }});
  }
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddGrad<SigmoidGradOf>(catalogue, "SigmoidGrad", "dy * y * (1 - y), where y = sigmoid(x).",
                         SigmoidGradGradient);
  AddGrad<TanhGradOf>(catalogue, "TanhGrad", "dy * (1 - y * y), where y = tanh(x).",
                      TanhGradGradient);
  AddGrad<SqrtGradOf>(catalogue, "SqrtGrad", "dy * 0.5 / y, where y = sqrt(x).", SqrtGradGradient);
  AddGrad<RsqrtGradOf>(catalogue, "RsqrtGrad", "dy * -0.5 * y^3, where y = rsqrt(x).",
                       RsqrtGradGradient);
  AddGrad<InvGradOf>(catalogue, "ReciprocalGrad", "-dy * y * y, where y = 1 / x.",
                     ReciprocalGradGradient("ReciprocalGrad"));
  AddGrad<InvGradOf>(catalogue, "InvGrad", "-dy * y * y, where y = 1 / x.",
                     ReciprocalGradGradient("InvGrad"));
}

}  // namespace weft::ops::math::unary_grad
