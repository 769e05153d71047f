// SPDX-License-Identifier: Apache-2.0
// Rounded quotients and remainders.
#include <cmath>

#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::division {
namespace {

// Toward minus infinity.
struct FloorDivOf {
  static constexpr char kName[] = "FloorDivOf";
  template <typename T>
  WEFT_INLINE T Apply(T x, T y) {
    if constexpr (kIsInteger<T>) {
      const T quotient = DivOf::Apply<T>(x, y);
      if constexpr (std::is_signed_v<T>) {
        if (y != 0 && y != T(-1) && x % y != 0 && (x < 0) != (y < 0))
          return static_cast<T>(quotient - 1);
      }
      return quotient;
    } else {
      // The quotient is rounded to T before it is cut.
      return static_cast<T>(std::floor(static_cast<Wide<T>>(DivOf::Apply<T>(x, y))));
    }
  }
};
struct TruncateDivOf {
  static constexpr char kName[] = "TruncateDivOf";
  template <typename T>
  WEFT_INLINE T Apply(T x, T y) {
    if constexpr (kIsInteger<T>)
      return DivOf::Apply<T>(x, y);
    else
      return static_cast<T>(std::trunc(static_cast<Wide<T>>(DivOf::Apply<T>(x, y))));
  }
};
// The remainder has the sign of x.
struct TruncateModOf {
  static constexpr char kName[] = "TruncateModOf";
  template <typename T>
  WEFT_INLINE T Apply(T x, T y) {
    if constexpr (kIsInteger<T>) {
      if (y == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        if (y == T(-1)) return 0;
      }
      return static_cast<T>(x % y);
    } else {
      return static_cast<T>(std::fmod(static_cast<Wide<T>>(x), static_cast<Wide<T>>(y)));
    }
  }
};
// The remainder has the sign of y.
struct FloorModOf {
  static constexpr char kName[] = "FloorModOf";
  template <typename T>
  WEFT_INLINE T Apply(T x, T y) {
    const Wide<T> rest = TruncateModOf::Apply<T>(x, y);
    const Wide<T> divisor = y;
    return static_cast<T>(rest != 0 && (rest < 0) != (divisor < 0) ? rest + divisor : rest);
  }
};

// TensorFlow's code for the truncating ops.
Status RefuseZeroDivisorInternally(const Tensor& a, const Tensor& b) {
  const Status refused = RefuseZeroDivisor(a, b);
  return refused.ok() ? refused : Internal(refused.message());
}

Status FloorModGradient(GradientContext& c) {
  const Endpoint quotient = c.Op("FloorDiv", {c.input(0), c.input(1)});
  SetBroadcastGradients(c, c.gradient(), c.Op("Mul", {c.gradient(), c.Op("Neg", {quotient})}));
  return absl::OkStatus();
}

OpSpec Quotient(const char* name, const char* doc, const char* types) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: T").Input("y: T").Output("z: T").Attr(types).Shape(shapes::Broadcast);
  return spec;
}
template <typename Op, typename FloatTypes, typename IntegerTypes>
void Add(Catalogue& catalogue, OpSpec spec, FloatTypes floats, IntegerTypes integers,
         Status (*check)(const Tensor&, const Tensor&) = RefuseZeroDivisor) {
  AddElementwise(spec, {.tiles = BinaryTiles<Op>(floats)});
  AddElementwise(spec, {.tiles = BinaryTiles<Op>(integers), .check = check});
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  constexpr char kTypes[] =
      "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, "
      "int64, "
      "complex64, complex128}";
  using Wholes = TypeList<int32_t, int64_t>;
  Add<FloorDivOf>(catalogue,
                  Quotient("FloorDiv", "x / y rounded toward minus infinity.", kTypes).NoGradient(),
                  RealFloats(), Integers());
  Add<TruncateDivOf>(catalogue,
                     Quotient("TruncateDiv", "x / y rounded toward 0.", kTypes).NoGradient(),
                     RealFloats(), Integers(), RefuseZeroDivisorInternally);
  Add<FloorModOf>(
      catalogue,
      Quotient("FloorMod", "The remainder of FloorDiv: it has the sign of y.",
               "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64, bfloat16, half, "
               "float, double}")
          .Gradient(FloorModGradient),
      RealFloats(), Integers());
  Add<TruncateModOf>(catalogue,
                     Quotient("Mod", "The remainder of TruncateDiv: it has the sign of x.",
                              "T: {int32, int64, half, half, bfloat16, float, double}"),
                     TypeList<float, double>(), Wholes());
  Add<TruncateModOf>(catalogue,
                     Quotient("TruncateMod", "The remainder of TruncateDiv: it has the sign of x.",
                              "T: {int32, int64, bfloat16, half, float, double}"),
                     TypeList<float, double>(), Wholes(), RefuseZeroDivisorInternally);
}

}  // namespace weft::ops::math::division
