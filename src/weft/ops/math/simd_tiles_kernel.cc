// SPDX-License-Identifier: Apache-2.0
// Loops of cheap arithmetic, compiled once for each instruction set and vectorised by the compiler.
#include <cstring>

#include "base/vector_sets.h"
#include "weft/ops/math/activation_functors.h"
#include "weft/ops/math/simd_table_kernel.h"
#include "weft/ops/math/tile_loop.h"

#define HWY_DISABLED_TARGETS WEFT_UNUSED_VECTOR_SETS
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "weft/ops/math/simd_tiles_kernel.cc"
#include "hwy/foreach_target.h"

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace weft::ops::HWY_NAMESPACE {
namespace {

template <typename Op, typename T>
void RunBinary(const std::byte* a, int a_step, const std::byte* b, int b_step, std::byte* out,
               int64_t n) {
  BinaryLoop<Op, T>(a, a_step, b, b_step, out, n);
}
template <typename Op, typename T>
void RunUnary(const std::byte* a, int a_step, const std::byte*, int, std::byte* out, int64_t n) {
  UnaryLoop<Op, T>(a, a_step, out, n);
}

#define WEFT_FLOATS(run, op) \
  {op::kName, DType::kFloat, run<op, float>}, { op::kName, DType::kDouble, run<op, double> }
#define WEFT_NUMBERS(run, op)                                           \
  WEFT_FLOATS(run, op), {op::kName, DType::kInt32, run<op, int32_t>}, { \
    op::kName, DType::kInt64, run<op, int64_t>                          \
  }
constexpr SimdTile kTiles[] = {
    WEFT_NUMBERS(RunBinary, AddOf),
    WEFT_NUMBERS(RunBinary, SubOf),
    WEFT_NUMBERS(RunBinary, MulOf),
    WEFT_NUMBERS(RunBinary, MaximumOf),
    WEFT_NUMBERS(RunBinary, MinimumOf),
    WEFT_NUMBERS(RunBinary, EqualOf),
    WEFT_NUMBERS(RunBinary, NotEqualOf),
    WEFT_NUMBERS(RunBinary, LessOf),
    WEFT_NUMBERS(RunBinary, LessEqualOf),
    WEFT_NUMBERS(RunBinary, GreaterOf),
    WEFT_NUMBERS(RunBinary, GreaterEqualOf),
    WEFT_FLOATS(RunBinary, DivOf),
    WEFT_FLOATS(RunBinary, SquaredDifferenceOf),
    WEFT_FLOATS(RunBinary, SigmoidGradOf),
    WEFT_FLOATS(RunBinary, TanhGradOf),
    WEFT_FLOATS(RunBinary, SqrtGradOf),
    WEFT_FLOATS(RunBinary, RsqrtGradOf),
    WEFT_FLOATS(RunBinary, InvGradOf),
    WEFT_NUMBERS(RunUnary, NegOf),
    WEFT_FLOATS(RunUnary, SquareOf),
    WEFT_FLOATS(RunUnary, ReciprocalOf),
    WEFT_FLOATS(RunUnary, AbsOf),
    WEFT_FLOATS(RunUnary, SqrtOf),
    WEFT_FLOATS(RunUnary, RsqrtOf),
    WEFT_FLOATS(RunUnary, ReluOf),
    WEFT_FLOATS(RunUnary, Relu6Of),
    WEFT_FLOATS(RunUnary, SoftsignOf),
    WEFT_FLOATS(RunBinary, ReluGradOf),
    WEFT_FLOATS(RunBinary, Relu6GradOf),
    WEFT_FLOATS(RunBinary, SoftsignGradOf),
    {kCastToFloat, DType::kBool, RunUnary<CastTo<float>, uint8_t>},
    {kCastToFloat, DType::kUint8, RunUnary<CastTo<float>, uint8_t>},
    {kCastToFloat, DType::kInt32, RunUnary<CastTo<float>, int32_t>},
    {kCastToFloat, DType::kInt64, RunUnary<CastTo<float>, int64_t>},
    {kCastToFloat, DType::kDouble, RunUnary<CastTo<float>, double>},
    {kCastToFloat, DType::kBfloat16, RunUnary<CastTo<float>, Bfloat16>},
    {kCastToBfloat16, DType::kFloat, RunUnary<CastTo<Bfloat16>, float>},
};
#undef WEFT_NUMBERS
#undef WEFT_FLOATS

SimdTable CheapTiles() { return {kTiles, sizeof(kTiles) / sizeof(kTiles[0])}; }

}  // namespace
}  // namespace weft::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace weft::ops {
HWY_EXPORT(CheapTiles);

namespace {
TileFunction FindIn(const SimdTable& table, const char* functor, DType dtype) {
  for (size_t i = 0; i < table.size; ++i) {
    if (table.tiles[i].dtype == dtype && std::strcmp(table.tiles[i].functor, functor) == 0) {
      return table.tiles[i].run;
    }
  }
  return nullptr;
}
}  // namespace

TileFunction FindSimdTile(const char* functor, DType dtype) {
  TileFunction found = FindIn(HWY_DYNAMIC_DISPATCH(CheapTiles)(), functor, dtype);
  return found != nullptr ? found : FindIn(SimdMathTiles(), functor, dtype);
}

}  // namespace weft::ops
#endif
