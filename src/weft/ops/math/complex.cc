// SPDX-License-Identifier: Apache-2.0
// Complex numbers and their parts.
#include <complex>

#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::complex {
namespace {

using Complexes = TypeList<Complex64, Complex128>;
using E = Endpoint;

#define WEFT_PART(name, expression)        \
  struct name {                            \
    static constexpr char kName[] = #name; \
    template <typename T>                  \
    WEFT_INLINE auto Apply(T x) {          \
      return expression;                   \
    }                                      \
  };
WEFT_PART(RealOf, x.real())
WEFT_PART(ImagOf, x.imag())
WEFT_PART(MagnitudeOf, std::abs(x))
WEFT_PART(AngleOf, std::arg(x))
WEFT_PART(ConjOf, T(x.real(), -x.imag()))
#undef WEFT_PART
struct ComplexOf {
  static constexpr char kName[] = "ComplexOf";
  template <typename T>
  WEFT_INLINE std::complex<T> Apply(T real, T imag) {
    return {real, imag};
  }
};

E MakeComplex(GradientContext& c, E real, E imag, DType type) {
  return c.Op("Complex", {real, imag}, {{"Tout", type}});
}
E Zero(GradientContext& c) { return ScalarOf(c, TypeOf(c.gradient()), 0); }

Status RealGradient(GradientContext& c) {
  c.set_input(0, MakeComplex(c, c.gradient(), Zero(c), TypeOf(c.input(0))));
  return absl::OkStatus();
}
Status ImagGradient(GradientContext& c) {
  c.set_input(0, MakeComplex(c, Zero(c), c.gradient(), TypeOf(c.input(0))));
  return absl::OkStatus();
}
Status ConjGradient(GradientContext& c) {
  c.set_input(0, c.Op("Conj", {c.gradient()}));
  return absl::OkStatus();
}
Status ComplexGradient(GradientContext& c) {
  const DType part = TypeOf(c.input(0));
  SetBroadcastGradients(c, c.Op("Real", {c.gradient()}, {{"Tout", part}}),
                        c.Op("Imag", {c.gradient()}, {{"Tout", part}}));
  return absl::OkStatus();
}
Status MagnitudeGradient(GradientContext& c) {
  const DType type = TypeOf(c.input(0));
  const E numerator = c.Op("Mul", {MakeComplex(c, c.gradient(), Zero(c), type), c.input(0)});
  c.set_input(0, c.Op("DivNoNan", {numerator, MakeComplex(c, c.output(0), Zero(c), type)}));
  return absl::OkStatus();
}
Status AngleGradient(GradientContext& c) {
  const DType type = TypeOf(c.input(0));
  const DType part = TypeOf(c.gradient());
  const E real = c.Op("Real", {c.input(0)}, {{"Tout", part}});
  const E imag = c.Op("Imag", {c.input(0)}, {{"Tout", part}});
  const E slope = c.Op("Reciprocal", {MakeComplex(c, imag, real, type)});
  c.set_input(0, c.Op("Mul", {c.Op("Neg", {MakeComplex(c, c.gradient(), Zero(c), type)}), slope}));
  return absl::OkStatus();
}

template <typename Op>
void AddPart(Catalogue& catalogue, const char* name, const char* doc, GradientFunction gradient,
             bool is_old = false) {
  OpSpec spec(name);
  spec.Doc(doc).Input(is_old ? "x: T" : "input: T").Output(is_old ? "y: Tout" : "output: Tout");
  spec.Attr("T: {complex64, complex128} = DT_COMPLEX64").Attr("Tout: {float, double} = DT_FLOAT");
  AddElementwise(spec.Shape(shapes::SameAsInput).Gradient(std::move(gradient)),
                 {.tiles = UnaryTiles<Op>(Complexes())});
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddPart<RealOf>(catalogue, "Real", "The real part.", RealGradient);
  AddPart<ImagOf>(catalogue, "Imag", "The imaginary part.", ImagGradient);
  AddPart<AngleOf>(catalogue, "Angle", "The angle to the real axis, in radians.", AngleGradient);
  AddPart<MagnitudeOf>(catalogue, "ComplexAbs", "The distance from 0.", MagnitudeGradient, true);
  OpSpec conj("Conj");
  conj.Doc("The complex conjugate.").Input("input: T").Output("output: T");
  conj.Attr("T: {complex64, complex128, variant} = DT_COMPLEX64").Shape(shapes::SameAsInput);
  AddElementwise(conj.Gradient(ConjGradient), {.tiles = UnaryTiles<ConjOf>(Complexes())});
  catalogue.Add(std::move(conj));
  OpSpec make("Complex");
  make.Doc("A complex number from its parts, which broadcast.").Input("real: T").Input("imag: T");
  make.Output("out: Tout").Attr("T: {float, double} = DT_FLOAT");
  make.Attr("Tout: {complex64, complex128} = DT_COMPLEX64").Shape(shapes::Broadcast);
  AddElementwise(make.Gradient(ComplexGradient),
                 {.tiles = BinaryTiles<ComplexOf>(TypeList<float, double>())});
  catalogue.Add(std::move(make));
}

}  // namespace weft::ops::math::complex
