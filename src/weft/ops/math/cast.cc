// SPDX-License-Identifier: Apache-2.0
// Conversion between element types.
#include <cmath>
#include <cstring>
#include <limits>

#include "weft/kernel/op_spec.h"
#include "weft/ops/math/functors.h"
#include "weft/ops/math/tile_loop.h"

namespace weft::ops::math::cast {
namespace {

using CastTypes =
    TypeList<bool, float, double, Half, Bfloat16, int32_t, int64_t, uint8_t, int8_t, int16_t,
             uint16_t, uint32_t, uint64_t, Complex64, Complex128, Float8E5m2, Float8E4m3fn>;
template <typename T>
inline constexpr bool kIsEightBitFloat =
    std::is_same_v<T, Float8E5m2> || std::is_same_v<T, Float8E4m3fn>;

// What x86 processors give: out of range and NaN become the most negative number, and types of less
// than 32 bits keep the low bits of an int32.
template <typename To, typename From>
inline To FloatToInteger(From x) {
  using Step = std::conditional_t<(sizeof(To) < 4), int32_t, int64_t>;
  if constexpr (std::is_same_v<To, uint64_t>) {
    if (x >= From(0x1p63)) return x < From(0x1p64) ? static_cast<uint64_t>(x) : uint64_t{1} << 63;
  }
  using Exact = std::conditional_t<std::is_same_v<To, int32_t>, int32_t, Step>;
  constexpr From kLimit = sizeof(Exact) == 4 ? From(0x1p31) : From(0x1p63);
  const Exact step =
      x >= -kLimit && x < kLimit ? static_cast<Exact>(x) : std::numeric_limits<Exact>::min();
  return static_cast<To>(step);
}

template <typename To, typename From>
inline To CastOne(From x) {
  if constexpr (kIsEightBitFloat<From>) {
    return CastOne<To>(static_cast<float>(x));
  } else if constexpr (kIsEightBitFloat<To>) {
    return To(CastOne<float>(x));
  } else if constexpr (kIsComplex<From> && !kIsComplex<To>) {
    return CastOne<To>(x.real());
  } else if constexpr (kIsComplex<From>) {
    return To(static_cast<typename To::value_type>(x.real()),
              static_cast<typename To::value_type>(x.imag()));
  } else if constexpr (kIsComplex<To>) {
    return To(CastOne<typename To::value_type>(x), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return static_cast<Wide<From>>(x) != Wide<From>(0);
  } else if constexpr (kIsInteger<To> && (kIsNarrow<From> || std::is_floating_point_v<From>)) {
    return FloatToInteger<To>(static_cast<Wide<From>>(x));
  } else {
    return static_cast<To>(static_cast<Wide<To>>(static_cast<Wide<From>>(x)));
  }
}

// Bits of the mantissa that From has and To lacks, for Truncate; 0 where that means nothing.
template <typename T>
constexpr int MantissaBits() {
  if constexpr (std::is_same_v<T, double>) return 52;
  if constexpr (std::is_same_v<T, float>) return 23;
  if constexpr (std::is_same_v<T, Half>) return 10;
  if constexpr (std::is_same_v<T, Bfloat16>) return 7;
  return 0;
}
template <typename From, typename To>
From DropBits(From x) {
  constexpr int kDropped = MantissaBits<From>() - MantissaBits<To>();
  if constexpr (MantissaBits<From>() > 0 && MantissaBits<To>() > 0 && kDropped > 0) {
    using Bits = std::conditional_t<sizeof(From) == 8, uint64_t,
                                    std::conditional_t<sizeof(From) == 4, uint32_t, uint16_t>>;
    Bits bits;
    std::memcpy(&bits, &x, sizeof(x));
    bits = static_cast<Bits>(bits & (~Bits(0) << kDropped));
    std::memcpy(static_cast<void*>(&x), &bits, sizeof(x));
  }
  return x;
}

template <typename From, typename To, bool truncate>
void CastMany(const std::byte* in_bytes, int, const std::byte*, int, std::byte* out_bytes,
              int64_t n) {
  const From* in = reinterpret_cast<const From*>(in_bytes);
  To* out = reinterpret_cast<To*>(out_bytes);
  for (int64_t i = 0; i < n; ++i) {
    From x = in[i];
    if constexpr (truncate) x = DropBits<From, To>(x);
    out[i] = CastOne<To>(x);
  }
}

TileFunction FindCast(DType from, DType to, bool truncate) {
  TileFunction found = nullptr;
  VisitDType(from, CastTypes(), [&]<typename From>() {
    VisitDType(to, CastTypes(), [&]<typename To>() {
      found = CastMany<From, To, false>;
      if constexpr (MantissaBits<From>() > MantissaBits<To>() && MantissaBits<To>() > 0) {
        if (truncate) found = CastMany<From, To, true>;
      }
    });
  });
  if (truncate) return found;
  TileFunction vector = nullptr;
  if (to == DType::kFloat) vector = FindSimdTile(kCastToFloat, from);
  if (to == DType::kBfloat16) vector = FindSimdTile(kCastToBfloat16, from);
  if (to == DType::kHalf) vector = FindSimdTile(kCastToHalf, from);
  return vector != nullptr ? vector : found;
}

class CastKernel final : public OpKernel {
 public:
  static StatusOr<std::unique_ptr<OpKernel>> Create(KernelConstruction& k) {
    const DType from = k.input_dtype(0);
    const DType to = k.output_dtype(0);
    TileFunction cast = FindCast(from, to, k.AttrOr<bool>("Truncate", false));
    if (cast == nullptr && from != to) {
      return Unimplemented("Cast ", DTypeName(from), " to ", DTypeName(to), " is not supported");
    }
    return std::unique_ptr<OpKernel>(new CastKernel(from, to, from == to ? nullptr : cast));
  }

  Status Compute(KernelContext& c) override {
    const Tensor& in = c.input(0);
    if (cast_ == nullptr) {
      c.SetOutput(0, in);
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(Tensor * out, c.AllocateOutput(0, in.shape()));
    c.ParallelFor(in.num_elements(), 32768, [&](int64_t begin, int64_t end) {
      cast_(in.bytes() + begin * in_size_, 1, nullptr, 0, out->bytes() + begin * out_size_,
            end - begin);
    });
    return absl::OkStatus();
  }

 private:
  CastKernel(DType from, DType to, TileFunction cast)
      : cast_(cast), in_size_(DTypeSize(from)), out_size_(DTypeSize(to)) {}
  const TileFunction cast_;  // null where the types are the same
  const size_t in_size_;
  const size_t out_size_;
};

Status CastGradient(GradientContext& c) {
  const auto is_differentiable = [](DType t) {
    return t == DType::kFloat || t == DType::kDouble || t == DType::kHalf ||
           t == DType::kBfloat16 || IsComplex(t);
  };
  const DType from = c.node().input_type(0).dtype;
  if (is_differentiable(from) && is_differentiable(c.node().output_type(0).dtype)) {
    c.set_input(0, c.Op("Cast", {c.gradient()}, {{"DstT", from}}));
  }
  return absl::OkStatus();
}

}  // namespace

void Register(Catalogue& catalogue) {
  catalogue.Add(
      OpSpec("Cast")
          .Doc("Converts each element to DstT. Floats to integers round toward zero; complex "
               "to real drops the imaginary part; Truncate cuts bits of floats instead of "
               "rounding.")
          .Input("x: SrcT")
          .Output("y: DstT")
          .Attr("SrcT: type")
          .Attr("DstT: type")
          .Attr("Truncate: bool = false")
          .Shape(shapes::SameAsInput)
          .Gradient(CastGradient)
          .Kernel(MakeKernel<CastKernel>()));
}

}  // namespace weft::ops::math::cast
