// SPDX-License-Identifier: Apache-2.0
// The incomplete gamma and beta functions, and the slopes by the parameters of gamma distributions.
#include <array>
#include <cmath>

#include "weft/ops/broadcast.h"
#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"
#include "weft/ops/math/gamma_kernel.h"

namespace weft::ops::math::incomplete_gamma {
namespace {

using E = Endpoint;
using G = GradientContext&;

#define WEFT_PAIR(name, expression)                                                    \
  struct name {                                                                        \
    static constexpr char kName[] = #name;                                             \
    template <typename T>                                                              \
    static T Apply(T a, T x) {                                                         \
      return static_cast<T>(expression(static_cast<double>(static_cast<Wide<T>>(a)),   \
                                       static_cast<double>(static_cast<Wide<T>>(x)))); \
    }                                                                                  \
  };
WEFT_PAIR(LowerOf, LowerGamma)
WEFT_PAIR(UpperOf, UpperGamma)
WEFT_PAIR(SlopeOf, LowerGammaSlope)
WEFT_PAIR(SampleSlopeOf, GammaSampleSlope)
#undef WEFT_PAIR

// The three inputs have one shape, or are scalars.
template <typename T>
class BetaKernel final : public OpKernel {
 public:
  Status Compute(KernelContext& c) override {
    const Tensor a = c.input(0), b = c.input(1), x = c.input(2);
    Shape shape;
    for (const Tensor* t : {&a, &b, &x}) {
      if (t->shape().IsScalar() || t->shape() == shape) continue;
      if (!shape.IsScalar()) {
        return InvalidArgument("Shapes of a, b and x are inconsistent: ", a.shape().ToString(),
                               ", ", b.shape().ToString(), " and ", x.shape().ToString());
      }
      shape = t->shape();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, shape));
    if (out->num_elements() == 0) return absl::OkStatus();
    const auto loops = MakeBroadcastLoops<3>(shape, {&a.shape(), &b.shape(), &x.shape()});
    const auto& step = loops.inner.stride;
    loops.ForEachRow(0, loops.num_rows(), [&](const std::array<int64_t, 3>& at, int64_t to) {
      for (int64_t i = 0; i < loops.inner.size; ++i) {
        out->data<T>()[to + i] =
            static_cast<T>(IncompleteBeta(static_cast<double>(a.data<T>()[at[0] + i * step[0]]),
                                          static_cast<double>(b.data<T>()[at[1] + i * step[1]]),
                                          static_cast<double>(x.data<T>()[at[2] + i * step[2]])));
      }
    });
    return absl::OkStatus();
  }
};

Status BetaShape(ShapeContext& c) {
  PartialShape shape;
  bool all_known = true, all_scalars = true;
  for (int i = 0; i < 3; ++i) {
    all_known = all_known && c.input(i).known_rank();
    if (!c.input(i).known_rank() || c.input(i).rank() == 0) continue;
    WEFT_ASSIGN_OR_RETURN(shape, shape.MergeWith(c.input(i)));
    all_scalars = false;
  }
  if (all_known && all_scalars) shape = Shape();
  c.set_output(0, std::move(shape));
  return absl::OkStatus();
}

E Times(G c, E a, E b) { return c.Op("Mul", {a, b}); }

// The density at x; the slope by a is an op of its own.
Status IncompleteGradient(G c, bool lower) {
  const E a = c.input(0), x = c.input(1);
  const E one = ScalarOf(c, TypeOf(a), 1);
  const E power = Times(c, c.Op("Sub", {a, one}), c.Op("Log", {x}));
  const E density = c.Op("Exp", {c.Op("Sub", {c.Op("Sub", {power, x}), c.Op("Lgamma", {a})})});
  const E dy = lower ? c.gradient() : c.Op("Neg", {c.gradient()});
  SetBroadcastGradients(c, Times(c, dy, c.Op("IgammaGradA", {a, x})), Times(c, dy, density));
  return absl::OkStatus();
}
Status LowerGradient(G c) { return IncompleteGradient(c, true); }
Status UpperGradient(G c) { return IncompleteGradient(c, false); }

// By x alone, as TensorFlow has it.
Status BetaGradient(G c) {
  const E a = c.input(0), b = c.input(1), x = c.input(2);
  const E one = ScalarOf(c, TypeOf(a), 1);
  const E log_beta = c.Op("Sub", {c.Op("AddV2", {c.Op("Lgamma", {a}), c.Op("Lgamma", {b})}),
                                  c.Op("Lgamma", {c.Op("AddV2", {a, b})})});
  const E powers = c.Op("AddV2", {c.Op("Xlog1py", {c.Op("Sub", {b, one}), c.Op("Neg", {x})}),
                                  c.Op("Xlogy", {c.Op("Sub", {a, one}), x})});
  const E slope = Times(c, c.gradient(), c.Op("Exp", {c.Op("Sub", {powers, log_beta})}));
  const E own = c.Op("Shape", {x});
  const E axes = c.Op("BroadcastGradientArgs", {own, c.Op("Shape", {slope})});
  c.set_input(2, c.Op("Reshape", {c.Op("Sum", {slope, axes}), own}));
  return absl::OkStatus();
}

template <typename Op, typename Types>
void AddPair(Catalogue& catalogue, OpSpec spec, GradientFunction gradient, Types types) {
  spec.Shape(shapes::Broadcast);
  if (gradient != nullptr) {
    spec.Gradient(std::move(gradient));
  } else {
    spec.NoGradient();
  }
  AddElementwise(spec, {.tiles = BinaryTiles<Op>(types), .grain = kCostlyGrain});
  catalogue.Add(std::move(spec));
}

OpSpec Pair(const char* name, const char* doc, const char* types) {
  OpSpec spec(name);
  spec.Doc(doc).Input("a: T").Input("x: T").Output("z: T").Attr(types);
  return spec;
}

}  // namespace

void Register(Catalogue& catalogue) {
  using Floats = TypeList<float, double>;
  constexpr char kAll[] = "T: {bfloat16, half, float, double}";
  AddPair<LowerOf>(catalogue,
                   Pair("Igamma", "The part of gamma(a)'s integral below x, over the whole.", kAll),
                   LowerGradient, Floats());
  AddPair<UpperOf>(
      catalogue, Pair("Igammac", "The part of gamma(a)'s integral above x, over the whole.", kAll),
      UpperGradient, Floats());
  AddPair<SlopeOf>(
      catalogue, Pair("IgammaGradA", "The derivative of Igamma(a, x) by a.", "T: {float, double}"),
      nullptr, Floats());
  OpSpec sample("RandomGammaGrad");
  sample.Doc("The derivative by alpha of a sample of the gamma distribution with this alpha.")
      .Input("alpha: T")
      .Input("sample: T")
      .Output("output: T")
      .Attr("T: {float, double}");
  AddPair<SampleSlopeOf>(catalogue, std::move(sample), nullptr, Floats());
  catalogue.Add(
      OpSpec("Betainc")
          .Doc("The part of beta(a, b)'s integral below x, over the whole.")
          .Input("a: T")
          .Input("b: T")
          .Input("x: T")
          .Output("z: T")
          .Attr("T: {float, double}")
          .Shape(BetaShape)
          .Gradient(BetaGradient)
          .Kernel({.types = {{"T", DTypesOf<float>()}}, .factory = MakeKernel<BetaKernel<float>>()})
          .Kernel(
              {.types = {{"T", DTypesOf<double>()}}, .factory = MakeKernel<BetaKernel<double>>()}));
}

}  // namespace weft::ops::math::incomplete_gamma
