// SPDX-License-Identifier: Apache-2.0
// Bits of integers.
#include <algorithm>
#include <bit>

#include "weft/ops/math/elementwise_kernel.h"

namespace weft::ops::math::bitwise {
namespace {

#define WEFT_BITS(name, expression)        \
  struct name {                            \
    static constexpr char kName[] = #name; \
    template <typename T>                  \
    WEFT_INLINE T Apply(T x, T y) {        \
      return static_cast<T>(expression);   \
    }                                      \
  };
WEFT_BITS(AndOf, x& y)
WEFT_BITS(OrOf, x | y)
WEFT_BITS(XorOf, x ^ y)
#undef WEFT_BITS

// Shifts by less than 0 or more than all bits but one are cut to these.
template <typename T>
WEFT_INLINE int ShiftBy(T y) {
  constexpr int kMost = 8 * sizeof(T) - 1;
  if constexpr (std::is_signed_v<T>) {
    if (y < 0) return 0;
  }
  return y > T(kMost) ? kMost : static_cast<int>(y);
}
struct LeftShiftOf {
  static constexpr char kName[] = "LeftShiftOf";
  template <typename T>
  WEFT_INLINE T Apply(T x, T y) {
    return static_cast<T>(static_cast<Arithmetic<T>>(x) << ShiftBy(y));
  }
};
struct RightShiftOf {
  static constexpr char kName[] = "RightShiftOf";
  template <typename T>
  WEFT_INLINE T Apply(T x, T y) {
    return static_cast<T>(x >> ShiftBy(y));
  }
};
struct InvertOf {
  static constexpr char kName[] = "InvertOf";
  template <typename T>
  WEFT_INLINE T Apply(T x) {
    return static_cast<T>(~x);
  }
};
struct PopulationCountOf {
  static constexpr char kName[] = "PopulationCountOf";
  template <typename T>
  WEFT_INLINE uint8_t Apply(T x) {
    return static_cast<uint8_t>(std::popcount(static_cast<std::make_unsigned_t<T>>(x)));
  }
};

constexpr char kTypes[] = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

template <typename Op>
void AddBinary(Catalogue& catalogue, const char* name, const char* doc, bool commutes) {
  OpSpec spec(name);
  spec.Doc(doc).Input("x: T").Input("y: T").Output("z: T").Attr(kTypes).Shape(shapes::Broadcast);
  if (commutes) spec.Commutative();
  AddElementwise(spec.NoGradient(), {.tiles = BinaryTiles<Op>(Integers())});
  catalogue.Add(std::move(spec));
}

}  // namespace

void Register(Catalogue& catalogue) {
  AddBinary<AndOf>(catalogue, "BitwiseAnd", "Bits that are set in x and in y.", true);
  AddBinary<OrOf>(catalogue, "BitwiseOr", "Bits that are set in x or in y.", true);
  AddBinary<XorOf>(catalogue, "BitwiseXor", "Bits that are set in one of x and y.", true);
  AddBinary<LeftShiftOf>(catalogue, "LeftShift", "x shifted left by y bits, at most all but one.",
                         false);
  AddBinary<RightShiftOf>(catalogue, "RightShift",
                          "x shifted right by y bits, at most all but one; the sign stays.", false);
  OpSpec invert("Invert");
  invert.Doc("All bits flipped.").Input("x: T").Output("y: T").Attr(kTypes);
  AddElementwise(invert.Shape(shapes::SameAsInput).NoGradient(),
                 {.tiles = UnaryTiles<InvertOf>(Integers())});
  catalogue.Add(std::move(invert));
  OpSpec count("PopulationCount");
  count.Doc("How many bits are set.").Input("x: T").Output("y: uint8").Attr(kTypes);
  AddElementwise(count.Shape(shapes::SameAsInput).NoGradient(),
                 {.tiles = UnaryTiles<PopulationCountOf>(Integers())});
  catalogue.Add(std::move(count));
}

}  // namespace weft::ops::math::bitwise
