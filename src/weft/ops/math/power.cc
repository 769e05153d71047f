// SPDX-License-Identifier: Apache-2.0
// Powers, products with logarithms, and angles of two coordinates.
#include <cmath>

#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::power {
namespace {

using RealAndComplexFloats = TypeList<float, double, Half, Bfloat16, Complex64, Complex128>;
using PowIntegers = TypeList<int32_t, int64_t, int8_t, int16_t>;
using E = Endpoint;

struct PowOf {
  static constexpr char kName[] = "PowOf";
  template <typename T>
  static T Apply(T x, T y) {
    if constexpr (kIsInteger<T>) {
      using A = Arithmetic<T>;
      A result = 1, base = static_cast<A>(x);
      for (T rest = y; rest > 0; rest = static_cast<T>(rest / 2)) {
        if (rest % 2 != 0) result *= base;
        base *= base;
      }
      return static_cast<T>(result);
    } else {
      return static_cast<T>(std::pow(static_cast<Wide<T>>(x), static_cast<Wide<T>>(y)));
    }
  }
};
#define WEFT_ZERO_WINS(name, expression)                    \
  struct name {                                             \
    static constexpr char kName[] = #name;                  \
    template <typename T>                                   \
    static T Apply(T x, T y) {                              \
      using W = Wide<T>;                                    \
      const W a = static_cast<W>(x);                        \
      const W b = static_cast<W>(y);                        \
      return a == W(0) ? T(0) : static_cast<T>(expression); \
    }                                                       \
  };
template <typename W>
W Log1p(W a) {
  if constexpr (kIsComplex<W>)
    return std::log(W(1) + a);
  else
    return std::log1p(a);
}
WEFT_ZERO_WINS(XlogyOf, a* std::log(b))
WEFT_ZERO_WINS(Xlog1pyOf, a* Log1p(b))
WEFT_ZERO_WINS(XdivyOf, a / b)
#undef WEFT_ZERO_WINS
struct Atan2Of {
  static constexpr char kName[] = "Atan2Of";
  template <typename T>
  static T Apply(T y, T x) {
    return static_cast<T>(std::atan2(static_cast<Wide<T>>(y), static_cast<Wide<T>>(x)));
  }
};
struct NextAfterOf {
  static constexpr char kName[] = "NextAfterOf";
  template <typename T>
  static T Apply(T x, T y) {
    return std::nextafter(x, y);
  }
};

Status RefuseNegativePower(const Tensor& a, const Tensor& b) {
  bool has_negative = false;
  if (a.num_elements() > 0) {
    VisitDType(b.dtype(), PowIntegers(), [&]<typename T>() {
      for (const T value : b.span<T>()) has_negative |= value < 0;
    });
  }
  return has_negative ? InvalidArgument("Integers to negative integer powers are not allowed")
                      : absl::OkStatus();
}

E Times(GradientContext& c, E a, E b) { return c.Op("Mul", {a, b}); }

Status PowGradient(GradientContext& c) {
  const E x = Conjugate(c, c.input(0));
  const E y = Conjugate(c, c.input(1));
  const E z = Conjugate(c, c.output(0));
  const DType dtype = TypeOf(x);
  const E one = ScalarOf(c, dtype, 1);
  const E zero = ScalarOf(c, dtype, 0);
  const E gx = Times(c, Times(c, c.gradient(), y), c.Op("Pow", {x, c.Op("Sub", {y, one})}));
  // log(x) where it means something, 0 elsewhere; x is made harmless first, so that no NaN spreads.
  const E mask = c.Op(IsComplex(dtype) ? "NotEqual" : "Greater", {x, zero});
  const E log_x = c.Op("SelectV2", {mask, c.Op("Log", {c.Op("SelectV2", {mask, x, one})}), zero});
  SetBroadcastGradients(c, gx, Times(c, Times(c, c.gradient(), z), log_x));
  return absl::OkStatus();
}
// 1 where x is not 0, else 0.
E NotZero(GradientContext& c) {
  const DType dtype = TypeOf(c.input(0));
  return c.Op("Cast", {c.Op("NotEqual", {c.input(0), ScalarOf(c, dtype, 0)})}, {{"DstT", dtype}});
}
Status XlogyGradient(GradientContext& c) {
  SetBroadcastGradients(c, Times(c, c.Op("Xlogy", {NotZero(c), c.input(1)}), c.gradient()),
                        Times(c, c.Op("Xdivy", {c.input(0), c.input(1)}), c.gradient()));
  return absl::OkStatus();
}
Status Xlog1pyGradient(GradientContext& c) {
  const E more = c.Op("AddV2", {c.input(1), ScalarOf(c, TypeOf(c.input(1)), 1)});
  SetBroadcastGradients(c, Times(c, c.Op("Xlog1py", {NotZero(c), c.input(1)}), c.gradient()),
                        Times(c, c.Op("Xdivy", {c.input(0), more}), c.gradient()));
  return absl::OkStatus();
}
Status XdivyGradient(GradientContext& c) {
  const E square = c.Op("Square", {c.input(1)});
  const E slope = c.Op("Xdivy", {c.Op("Neg", {c.input(0)}), square});
  SetBroadcastGradients(c, Times(c, c.Op("Xdivy", {NotZero(c), c.input(1)}), c.gradient()),
                        Times(c, slope, c.gradient()));
  return absl::OkStatus();
}
Status Atan2Gradient(GradientContext& c) {
  const E y = c.input(0);
  const E x = c.input(1);
  const E radius = c.Op("AddV2", {c.Op("Square", {x}), c.Op("Square", {y})});
  const E scaled = c.Op("RealDiv", {c.gradient(), radius});
  SetBroadcastGradients(c, Times(c, x, scaled), Times(c, c.Op("Neg", {y}), scaled));
  return absl::OkStatus();
}
Status NextAfterGradient(GradientContext& c) {
  const E ones = c.Op("OnesLike", {c.output(0)});
  const E zeros = c.Op("ZerosLike", {c.output(0)});
  SetBroadcastGradients(c, Times(c, ones, c.gradient()), Times(c, zeros, c.gradient()));
  return absl::OkStatus();
}

OpSpec Binary(const char* name, const char* doc, const char* types) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: T").Input("y: T").Output("z: T").Attr(types).Shape(shapes::Broadcast);
  return spec;
}
template <typename Op, typename Types>
void Add(Catalogue& catalogue, OpSpec spec, Types types) {
  AddElementwise(spec, {.tiles = BinaryTiles<Op>(types), .grain = kCostlyGrain});
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  OpSpec pow = Binary("Pow", "x to the power of y; integers refuse negative powers.",
                      "T: {bfloat16, float, half, double, int8, int16, int32, int64, complex64, "
                      "complex128}");
  AddElementwise(pow, {.tiles = BinaryTiles<PowOf>(PowIntegers()), .check = RefuseNegativePower});
  Add<PowOf>(catalogue, std::move(pow.Gradient(PowGradient)), RealAndComplexFloats());
  constexpr char kTypes[] = "T: {half, bfloat16, float, double, complex64, complex128}";
  Add<XlogyOf>(catalogue,
               Binary("Xlogy", "x * log(y); 0 where x is 0.", kTypes).Gradient(XlogyGradient),
               RealAndComplexFloats());
  Add<Xlog1pyOf>(
      catalogue,
      Binary("Xlog1py", "x * log(1 + y); 0 where x is 0.", kTypes).Gradient(Xlog1pyGradient),
      RealAndComplexFloats());
  Add<XdivyOf>(catalogue, Binary("Xdivy", "x / y; 0 where x is 0.", kTypes).Gradient(XdivyGradient),
               RealAndComplexFloats());
  OpSpec atan2("Atan2");
  atan2.Doc("The angle of the point (x, y), by the signs of both.").Input("y: T").Input("x: T");
  atan2.Output("z: T").Attr("T: {bfloat16, half, float, double}").Shape(shapes::Broadcast);
  Add<Atan2Of>(catalogue, std::move(atan2.Gradient(Atan2Gradient)), RealFloats());
  OpSpec next("NextAfter");
  next.Doc("The number next to x1 in the direction of x2.").Input("x1: T").Input("x2: T");
  next.Output("output: T").Attr("T: {double, float} = DT_FLOAT").Shape(shapes::Broadcast);
  Add<NextAfterOf>(catalogue, std::move(next.Gradient(NextAfterGradient)),
                   TypeList<float, double>());
}

}  // namespace weft::ops::math::power
