// SPDX-License-Identifier: Apache-2.0
// Sums, products and quotients of two tensors that broadcast.
#include "weft/ops/gradients.h"
#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::arithmetic {
namespace {

using RealAndComplexFloats = TypeList<float, double, Half, Bfloat16, Complex64, Complex128>;

struct StringJoinOf {
  static constexpr char kName[] = "StringJoinOf";
  template <typename T>
  static T Apply(const T& x, const T& y) {
    return x + y;
  }
};

// 0 where y is 0.
struct DivNoNanOf {
  static constexpr char kName[] = "DivNoNanOf";
  template <typename T>
  WEFT_INLINE T Apply(T x, T y) {
    const Wide<T> b = static_cast<Wide<T>>(y);
    return b == Wide<T>(0) ? T(0) : static_cast<T>(static_cast<Wide<T>>(x) / b);
  }
};
// 0 where y is 0, even if x is infinite or NaN.
struct MulNoNanOf {
  static constexpr char kName[] = "MulNoNanOf";
  template <typename T>
  WEFT_INLINE T Apply(T x, T y) {
    const Wide<T> b = static_cast<Wide<T>>(y);
    return b == Wide<T>(0) ? T(0) : static_cast<T>(static_cast<Wide<T>>(x) * b);
  }
};

Status AddGradient(GradientContext& c) {
  SetBroadcastGradients(c, c.gradient(), c.gradient());
  return absl::OkStatus();
}
Status SubGradient(GradientContext& c) {
  SetBroadcastGradients(c, c.gradient(), c.Op("Neg", {c.gradient()}));
  return absl::OkStatus();
}
Status MulGradient(GradientContext& c) {
  SetBroadcastGradients(c, c.Op("Mul", {c.gradient(), Conjugate(c, c.input(1))}),
                        c.Op("Mul", {Conjugate(c, c.input(0)), c.gradient()}));
  return absl::OkStatus();
}
Status MulNoNanGradient(GradientContext& c) {
  SetBroadcastGradients(c, c.Op("MulNoNan", {c.gradient(), c.input(1)}),
                        c.Op("MulNoNan", {c.input(0), c.gradient()}));
  return absl::OkStatus();
}
// Of a quotient that `div` computes.
GradientFunction QuotientGradient(const char* div) {
  return [div](GradientContext& c) {
    const Endpoint x = Conjugate(c, c.input(0));
    const Endpoint y = Conjugate(c, c.input(1));
    const Endpoint slope = c.Op(div, {c.Op(div, {c.Op("Neg", {x}), y}), y});
    SetBroadcastGradients(c, c.Op(div, {c.gradient(), y}), c.Op("Mul", {c.gradient(), slope}));
    return absl::OkStatus();
  };
}
Status SquaredDifferenceGradient(GradientContext& c) {
  const Endpoint two = ScalarOf(c, TypeOf(c.gradient()), 2);
  const Endpoint difference = c.Op("Sub", {c.input(0), c.input(1)});
  const Endpoint x = c.Op("Mul", {c.Op("Mul", {two, c.gradient()}), difference});
  SetBroadcastGradients(c, x, c.Op("Neg", {x}));
  return absl::OkStatus();
}
// The gradient goes to the operand that `wins` picks, to the first one where both are equal.
GradientFunction ExtremumGradient(const char* wins) {
  return [wins](GradientContext& c) {
    const Endpoint first = c.Op(wins, {c.input(0), c.input(1)});
    const Endpoint zero = ScalarOf(c, TypeOf(c.gradient()), 0);
    SetBroadcastGradients(c, c.Op("SelectV2", {first, c.gradient(), zero}),
                          c.Op("SelectV2", {first, zero, c.gradient()}));
    return absl::OkStatus();
  };
}

OpSpec Binary(const char* name, const char* doc, const char* types) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: T").Input("y: T").Output("z: T").Attr(types).Shape(shapes::Broadcast);
  return spec;
}

void RegisterSums(Catalogue& catalogue) {
  OpSpec add =
      Binary("Add", "Adds two tensors that broadcast; joins strings.",
             "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, complex64, "
             "complex128, string}");
  add.Traits({.fuses_as = FusesAs::kSum}).Gradient(AddGradient);
  using AddTypes = TypeList<float, double, Half, Bfloat16, uint8_t, int8_t, int16_t, int32_t,
                            int64_t, Complex64, Complex128>;
  std::vector<TileBody> tiles = BinaryTiles<AddOf>(AddTypes());
  tiles.push_back(BinaryTiles<StringJoinOf>(TypeList<std::string>())[0]);
  AddElementwise(add, {.tiles = tiles});
  catalogue.Add(std::move(add));

  OpSpec add_v2 =
      Binary("AddV2", "Adds two tensors that broadcast.",
             "T: {bfloat16, half, float, double, uint8, uint16, uint32, uint64, int8, int16, "
             "int32, int64, complex64, complex128}");
  add_v2.Commutative().Aggregate().Traits({.fuses_as = FusesAs::kSum}).Gradient(AddGradient);
  AddElementwise(add_v2, {.tiles = BinaryTiles<AddOf>(Numbers())});
  catalogue.Add(std::move(add_v2));

  OpSpec sub =
      Binary("Sub", "Subtracts y from x; they broadcast.",
             "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, int64, "
             "complex64, complex128, uint32, uint64}");
  sub.Gradient(SubGradient);
  AddElementwise(sub, {.tiles = BinaryTiles<SubOf>(Numbers())});
  catalogue.Add(std::move(sub));

  OpSpec squared =
      Binary("SquaredDifference", "Computes (x - y) * conj(x - y) of tensors that broadcast.",
             "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}");
  squared.Commutative().Gradient(SquaredDifferenceGradient);
  using SquaredTypes =
      TypeList<float, double, Half, Bfloat16, int32_t, int64_t, Complex64, Complex128>;
  AddElementwise(squared, {.tiles = BinaryTiles<SquaredDifferenceOf>(SquaredTypes())});
  catalogue.Add(std::move(squared));
}

void RegisterProducts(Catalogue& catalogue) {
  OpSpec mul =
      Binary("Mul", "Multiplies two tensors that broadcast.",
             "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, "
             "uint64, int64, complex64, complex128}");
  mul.Commutative().Gradient(MulGradient);
  AddElementwise(mul, {.tiles = BinaryTiles<MulOf>(Numbers())});
  catalogue.Add(std::move(mul));

  OpSpec no_nan = Binary("MulNoNan", "Multiplies; 0 where y is 0, even if x is infinite or NaN.",
                         "T: {bfloat16, half, float, double, complex64, complex128}");
  no_nan.Gradient(MulNoNanGradient);
  AddElementwise(no_nan, {.tiles = BinaryTiles<MulNoNanOf>(RealAndComplexFloats())});
  catalogue.Add(std::move(no_nan));
}

void RegisterQuotients(Catalogue& catalogue) {
  constexpr char kTypes[] =
      "T: {bfloat16, half, float, double, uint8, int8, uint16, int16, int32, uint32, uint64, "
      "int64, "
      "complex64, complex128}";
  // Division of integers is checked, so it stands as a kernel of its own.
  OpSpec div = Binary(
      "Div", "Divides x by y; integers round toward zero and refuse a divisor of 0.", kTypes);
  div.Gradient(QuotientGradient("RealDiv"));
  AddElementwise(div, {.tiles = BinaryTiles<DivOf>(RealAndComplexFloats())});
  AddElementwise(div, {.tiles = BinaryTiles<DivOf>(Integers()), .check = RefuseZeroDivisor});
  catalogue.Add(std::move(div));

  OpSpec real_div = Binary("RealDiv", "Divides x by y; they broadcast.", kTypes);
  real_div.Gradient(QuotientGradient("RealDiv"));
  AddElementwise(real_div, {.tiles = BinaryTiles<DivOf>(RealAndComplexFloats())});
  catalogue.Add(std::move(real_div));

  OpSpec no_nan = Binary("DivNoNan", "Divides x by y; 0 where y is 0.",
                         "T: {half, float, bfloat16, double, complex64, complex128}");
  no_nan.Gradient(QuotientGradient("DivNoNan"));
  AddElementwise(no_nan, {.tiles = BinaryTiles<DivNoNanOf>(RealAndComplexFloats())});
  catalogue.Add(std::move(no_nan));
}

void RegisterExtrema(Catalogue& catalogue) {
  constexpr char kTypes[] =
      "T: {bfloat16, half, float, double, int8, uint8, int16, uint16, int32, uint32, int64, "
      "uint64}";
  OpSpec maximum = Binary("Maximum", "The larger of x and y; NaN if one of them is.", kTypes);
  maximum.Gradient(ExtremumGradient("GreaterEqual"));
  AddElementwise(maximum, {.tiles = BinaryTiles<MaximumOf>(RealNumbers())});
  catalogue.Add(std::move(maximum));
  OpSpec minimum = Binary("Minimum", "The smaller of x and y; NaN if one of them is.", kTypes);
  minimum.Gradient(ExtremumGradient("LessEqual"));
  AddElementwise(minimum, {.tiles = BinaryTiles<MinimumOf>(RealNumbers())});
  catalogue.Add(std::move(minimum));
}

}  // namespace

void Register(Catalogue& catalogue) {
  RegisterSums(catalogue);
  RegisterProducts(catalogue);
  RegisterQuotients(catalogue);
  RegisterExtrema(catalogue);
}

}  // namespace weft::ops::math::arithmetic
