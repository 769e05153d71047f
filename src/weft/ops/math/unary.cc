// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of one tensor that need no series: signs, powers, rounding.
#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::unary {
namespace {

using RealAndComplexFloats = TypeList<float, double, Half, Bfloat16, Complex64, Complex128>;
using SignedIntegers = TypeList<int32_t, int64_t, int8_t, int16_t>;

// -1, 0 or 1; NaN stays NaN; x / |x| of complex numbers.
struct SignOf {
  static constexpr char kName[] = "SignOf";
  template <typename T>
  WEFT_INLINE T Apply(T x) {
    if constexpr (kIsComplex<T>) {
      return x == T(0) ? T(0) : x / std::abs(x);
    } else if constexpr (kIsInteger<T>) {
      return static_cast<T>((x > 0) - (x < 0));
    } else {
      const Wide<T> a = static_cast<Wide<T>>(x);
      return a > 0 ? T(1) : a < 0 ? T(-1) : x == x ? T(0) : x;
    }
  }
};
#define WEFT_ROUNDING(name, function)                           \
  struct name {                                                 \
    static constexpr char kName[] = #name;                      \
    template <typename T>                                       \
    WEFT_INLINE T Apply(T x) {                                  \
      if constexpr (kIsInteger<T>) return x;                    \
      return static_cast<T>(function(static_cast<Wide<T>>(x))); \
    }                                                           \
  };
WEFT_ROUNDING(FloorOf, std::floor)
WEFT_ROUNDING(CeilOf, std::ceil)
WEFT_ROUNDING(RoundOf, std::rint)  // halves go to even
#undef WEFT_ROUNDING

template <typename... Ts, typename... Us>
TypeList<Ts..., Us...> Join(TypeList<Ts...>, TypeList<Us...>) {
  return {};
}

Endpoint Times(GradientContext& c, Endpoint a, Endpoint b) { return c.Op("Mul", {a, b}); }

Status AbsGradient(GradientContext& c) {
  c.set_input(0, Times(c, c.gradient(), c.Op("Sign", {c.input(0)})));
  return absl::OkStatus();
}
Status NegGradient(GradientContext& c) {
  c.set_input(0, c.Op("Neg", {c.gradient()}));
  return absl::OkStatus();
}
Status SignGradient(GradientContext& c) {
  c.set_input(0, c.Op("ZerosLike", {c.input(0)}));
  return absl::OkStatus();
}
Status SquareGradient(GradientContext& c) {
  const Endpoint two = ScalarOf(c, TypeOf(c.input(0)), 2);
  c.set_input(0, Times(c, c.gradient(), Times(c, two, Conjugate(c, c.input(0)))));
  return absl::OkStatus();
}
// dy -> op(y, dy)
GradientFunction FromOutput(const char* op) {
  return [op](GradientContext& c) {
    c.set_input(0, c.Op(op, {c.output(0), c.gradient()}));
    return absl::OkStatus();
  };
}

OpSpec Unary(const char* name, const char* doc, const char* types) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: T").Output("y: T").Attr(types).Shape(shapes::SameAsInput);
  return spec;
}

template <typename Op, typename... Ts>
void AddUnary(Catalogue& catalogue, OpSpec spec, TypeList<Ts...> types) {
  AddElementwise(spec, {.tiles = UnaryTiles<Op>(types)});
  catalogue.Add(std::move(spec));
}

constexpr char kFloats[] = "T: {bfloat16, half, float, double}";
constexpr char kFloatsAndComplex[] = "T: {bfloat16, half, float, double, complex64, complex128}";
constexpr char kSigned[] = "T: {bfloat16, half, float, double, int8, int16, int32, int64}";
constexpr char kSignedAndComplex[] =
    "T: {bfloat16, half, float, double, int8, int16, int32, int64, complex64, complex128}";

void RegisterSigns(Catalogue& catalogue) {
  const auto numbers = Join(RealAndComplexFloats(), SignedIntegers());
  AddUnary<AbsOf>(catalogue, Unary("Abs", "The absolute value.", kSigned).Gradient(AbsGradient),
                  Join(RealFloats(), SignedIntegers()));
  AddUnary<NegOf>(catalogue, Unary("Neg", "The negative.", kSignedAndComplex).Gradient(NegGradient),
                  numbers);
  AddUnary<SignOf>(catalogue,
                   Unary("Sign", "-1, 0 or 1 by the sign; x / |x| of complex numbers; NaN stays.",
                         kSignedAndComplex)
                       .Gradient(SignGradient),
                   numbers);
}

void RegisterPowers(Catalogue& catalogue) {
  AddUnary<SquareOf>(
      catalogue,
      Unary("Square", "The square.",
            "T: {bfloat16, half, float, double, int8, int16, int32, int64, uint8, uint16, "
            "uint32, uint64, complex64, complex128}")
          .Gradient(SquareGradient),
      Numbers());
  AddUnary<SqrtOf>(catalogue,
                   Unary("Sqrt", "The square root; NaN below 0.", kFloatsAndComplex)
                       .Gradient(FromOutput("SqrtGrad")),
                   RealAndComplexFloats());
  AddUnary<RsqrtOf>(
      catalogue,
      Unary("Rsqrt", "1 / sqrt(x).", kFloatsAndComplex).Gradient(FromOutput("RsqrtGrad")),
      RealAndComplexFloats());
  AddUnary<ReciprocalOf>(
      catalogue,
      Unary("Reciprocal", "1 / x.", kSignedAndComplex).Gradient(FromOutput("ReciprocalGrad")),
      RealAndComplexFloats());
  AddUnary<ReciprocalOf>(catalogue,
                         Unary("Inv", "1 / x.", kSignedAndComplex).Gradient(FromOutput("InvGrad")),
                         RealAndComplexFloats());
}

void RegisterRounding(Catalogue& catalogue) {
  AddUnary<FloorOf>(catalogue,
                    Unary("Floor", "The largest integer not above x.", kFloats).NoGradient(),
                    RealFloats());
  AddUnary<CeilOf>(catalogue,
                   Unary("Ceil", "The smallest integer not below x.", kFloats).NoGradient(),
                   RealFloats());
  AddUnary<RoundOf>(
      catalogue,
      Unary("Round", "The nearest integer; halves go to the even one.", kSignedAndComplex)
          .NoGradient(),
      TypeList<float, double, Half, Bfloat16, int32_t, int64_t>());
  AddUnary<RoundOf>(
      catalogue,
      Unary("Rint", "The nearest integer; halves go to the even one.", kFloats).NoGradient(),
      TypeList<float, double>());
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterSigns(catalogue);
  RegisterPowers(catalogue);
  RegisterRounding(catalogue);
}

}  // namespace weft::ops::math::unary
