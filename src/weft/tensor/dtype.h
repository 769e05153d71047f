// SPDX-License-Identifier: Apache-2.0
// Element types, with TensorFlow's numbers and names (types.proto).
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#include "absl/strings/string_view.h"

#include "base/status.h"
#include "weft/tensor/narrow_float.h"

namespace weft {

enum class DType : uint8_t {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUint8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kQint8 = 11,
  kQuint8 = 12,
  kQint32 = 13,
  kBfloat16 = 14,
  kQint16 = 15,
  kQuint16 = 16,
  kUint16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,
  kVariant = 21,
  kUint32 = 22,
  kUint64 = 23,
  kFloat8E5m2 = 24,
  kFloat8E4m3fn = 25,
  kFloat8E4m3fnuz = 26,
  kFloat8E4m3b11fnuz = 27,
  kFloat8E5m2fnuz = 28,
  kInt4 = 29,
  kUint4 = 30,
  kInt2 = 31,
  kUint2 = 32,
};

inline constexpr int kNumDTypes = 33;
// A reference type on the wire is its base type's number plus this.
inline constexpr int kRefOffset = 100;

// Size of one element in memory, in bytes. Strings, resources and variants give the size of their
// in-memory object; 4- and 2-bit integers take a whole byte. kInvalid gives 0.
size_t DTypeSize(DType dtype);
// TensorFlow's short name, as in GraphDefs and error texts: "float", "int32", "resource".
absl::string_view DTypeName(DType dtype);
// Accepts the short name and the DT_ form, in any case: "float", "DT_FLOAT".
StatusOr<DType> DTypeFromName(absl::string_view name);
// From a types.proto number without the reference offset.
StatusOr<DType> DTypeFromNumber(int number);
// True if elements are plain bytes (not string, resource or variant).
bool IsPlain(DType dtype);
bool IsFloating(DType dtype);
bool IsInteger(DType dtype);
bool IsComplex(DType dtype);
bool IsQuantized(DType dtype);

// 8-bit-and-up storage for the types C++ has no name for. They carry bytes; arithmetic goes
// through conversions where an op supports them.
template <typename Storage, int Tag>
struct Opaque {
  Storage bits;
  bool operator==(const Opaque&) const = default;
};
using Qint8 = Opaque<int8_t, 0>;
using Quint8 = Opaque<uint8_t, 1>;
using Qint16 = Opaque<int16_t, 2>;
using Quint16 = Opaque<uint16_t, 3>;
using Qint32 = Opaque<int32_t, 4>;
using Int4 = Opaque<int8_t, 5>;
using Uint4 = Opaque<uint8_t, 6>;
using Int2 = Opaque<int8_t, 7>;
using Uint2 = Opaque<uint8_t, 8>;
using Float8E4m3fnuz = Opaque<uint8_t, 9>;
using Float8E4m3b11fnuz = Opaque<uint8_t, 10>;
using Float8E5m2fnuz = Opaque<uint8_t, 11>;
using Complex64 = std::complex<float>;
using Complex128 = std::complex<double>;

struct ResourceHandle;  // resource_handle.h
struct Variant;         // variant.h

// DTypeOf<T>: the DType of a C++ element type. VisitDType maps the other way.
template <typename T>
struct DTypeOfT;
// clang-format off
#define WEFT_DTYPE_LIST(X)                                                                      \
  X(float, kFloat) X(double, kDouble) X(int32_t, kInt32) X(uint8_t, kUint8) X(int16_t, kInt16)  \
  X(int8_t, kInt8) X(std::string, kString) X(Complex64, kComplex64) X(int64_t, kInt64)          \
  X(bool, kBool) X(Qint8, kQint8) X(Quint8, kQuint8) X(Qint32, kQint32) X(Bfloat16, kBfloat16)  \
  X(Qint16, kQint16) X(Quint16, kQuint16) X(uint16_t, kUint16) X(Complex128, kComplex128)       \
  X(Half, kHalf) X(ResourceHandle, kResource) X(Variant, kVariant) X(uint32_t, kUint32)         \
  X(uint64_t, kUint64) X(Float8E5m2, kFloat8E5m2) X(Float8E4m3fn, kFloat8E4m3fn)                \
  X(Float8E4m3fnuz, kFloat8E4m3fnuz) X(Float8E4m3b11fnuz, kFloat8E4m3b11fnuz)                   \
  X(Float8E5m2fnuz, kFloat8E5m2fnuz) X(Int4, kInt4) X(Uint4, kUint4) X(Int2, kInt2)             \
  X(Uint2, kUint2)
// clang-format on
#define WEFT_DTYPE_OF(type, name)               \
  template <>                                   \
  struct DTypeOfT<type> {                       \
    static constexpr DType value = DType::name; \
  };
WEFT_DTYPE_LIST(WEFT_DTYPE_OF)
#undef WEFT_DTYPE_OF

template <typename T>
inline constexpr DType DTypeOf = DTypeOfT<T>::value;

template <typename... Ts>
struct TypeList {};

using RealFloats = TypeList<float, double, Half, Bfloat16>;
using Integers = TypeList<int32_t, int64_t, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t>;
using RealNumbers = TypeList<float, double, Half, Bfloat16, int32_t, int64_t, uint8_t, int8_t,
                             int16_t, uint16_t, uint32_t, uint64_t>;
using Numbers = TypeList<float, double, Half, Bfloat16, int32_t, int64_t, uint8_t, int8_t, int16_t,
                         uint16_t, uint32_t, uint64_t, Complex64, Complex128>;

// Calls body.operator()<T>() for the T of the list whose DType is `dtype`; false if none is.
template <typename Body, typename... Ts>
bool VisitDType(DType dtype, TypeList<Ts...>, Body&& body) {
  return ((dtype == DTypeOf<Ts> ? (body.template operator()<Ts>(), true) : false) || ...);
}

}  // namespace weft
