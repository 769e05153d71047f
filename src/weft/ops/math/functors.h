// SPDX-License-Identifier: Apache-2.0
// What element-wise ops compute from one element, or from a pair.
#pragma once

#include <cmath>
#include <complex>
#include <type_traits>

#include "weft/tensor/dtype.h"

namespace weft::ops {

// Inlined everywhere, so that code for several instruction sets never shares an out-of-line copy.
#define WEFT_INLINE [[gnu::always_inline]] static inline

template <typename T>
inline constexpr bool kIsNarrow = std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16>;
template <typename T>
inline constexpr bool kIsComplex = std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>;
template <typename T>
inline constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// What arithmetic on T is done in: float for narrow floats; unsigned for integers, which wrap.
template <typename T, bool integer = kIsInteger<T>>
struct ArithmeticT {
  using type = std::conditional_t<kIsNarrow<T>, float, T>;
};
template <typename T>
struct ArithmeticT<T, true> {
  using type = std::common_type_t<std::make_unsigned_t<T>, unsigned>;
};
template <typename T>
using Arithmetic = typename ArithmeticT<T>::type;
// What comparisons and functions on T are done in.
template <typename T>
using Wide = std::conditional_t<kIsNarrow<T>, float, T>;

// An intermediate result as T can hold it: TensorFlow rounds each step of narrow floats.
template <typename T, typename A>
WEFT_INLINE A Rounded(A a) {
  if constexpr (kIsNarrow<T>) return static_cast<A>(static_cast<T>(a));
  return a;
}
template <typename A>
WEFT_INLINE A Conj(A a) {
  if constexpr (kIsComplex<A>) return A(a.real(), -a.imag());
  return a;
}

#define WEFT_BINARY_FUNCTOR(name, expression) \
  struct name {                               \
    static constexpr char kName[] = #name;    \
    template <typename T>                     \
    WEFT_INLINE T Apply(T x, T y) {           \
      using A = Arithmetic<T>;                \
      const A a = static_cast<A>(x);          \
      const A b = static_cast<A>(y);          \
      return static_cast<T>(expression);      \
    }                                         \
  };
WEFT_BINARY_FUNCTOR(AddOf, a + b)
WEFT_BINARY_FUNCTOR(SubOf, a - b)
WEFT_BINARY_FUNCTOR(MulOf, a* b)
WEFT_BINARY_FUNCTOR(SquaredDifferenceOf, Rounded<T>(a - b) * Conj(Rounded<T>(a - b)))
WEFT_BINARY_FUNCTOR(SigmoidGradOf, Rounded<T>(b* a) * Rounded<T>(A(1) - a))
WEFT_BINARY_FUNCTOR(TanhGradOf, b* Rounded<T>(A(1) - Rounded<T>(a * a)))
WEFT_BINARY_FUNCTOR(SqrtGradOf, A(0.5) * b / Conj(a))
WEFT_BINARY_FUNCTOR(RsqrtGradOf, A(-0.5) * (b * Conj(a)) * (Conj(a) * Conj(a)))
WEFT_BINARY_FUNCTOR(InvGradOf, -Conj(a) * b * Conj(a))
#undef WEFT_BINARY_FUNCTOR

// The quotient of floats and complex numbers, and of integers toward zero (0 where y is 0: kernels
// refuse that before).
struct DivOf {
  static constexpr char kName[] = "DivOf";
  template <typename T>
  WEFT_INLINE T Apply(T x, T y) {
    if constexpr (kIsInteger<T>) {
      if (y == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        if (y == T(-1)) return static_cast<T>(Arithmetic<T>(0) - static_cast<Arithmetic<T>>(x));
      }
      return static_cast<T>(x / y);
    } else {
      return static_cast<T>(static_cast<Wide<T>>(x) / static_cast<Wide<T>>(y));
    }
  }
};

// NaN wins, whichever side it is on; of two zeros the first.
struct MaximumOf {
  static constexpr char kName[] = "MaximumOf";
  template <typename T>
  WEFT_INLINE T Apply(T x, T y) {
    const Wide<T> a = x, b = y;
    if constexpr (kIsInteger<T>) return a < b ? y : x;
    return (a < b) | (b != b) ? y : x;
  }
};
struct MinimumOf {
  static constexpr char kName[] = "MinimumOf";
  template <typename T>
  WEFT_INLINE T Apply(T x, T y) {
    const Wide<T> a = x, b = y;
    if constexpr (kIsInteger<T>) return b < a ? y : x;
    return (b < a) | (b != b) ? y : x;
  }
};

#define WEFT_COMPARE_FUNCTOR(name, op)                                         \
  struct name {                                                                \
    static constexpr char kName[] = #name;                                     \
    template <typename T>                                                      \
    WEFT_INLINE bool Apply(const T& x, const T& y) {                           \
      return static_cast<const Wide<T>&>(x) op static_cast<const Wide<T>&>(y); \
    }                                                                          \
  };
WEFT_COMPARE_FUNCTOR(EqualOf, ==)
WEFT_COMPARE_FUNCTOR(NotEqualOf, !=)
WEFT_COMPARE_FUNCTOR(LessOf, <)
WEFT_COMPARE_FUNCTOR(LessEqualOf, <=)
WEFT_COMPARE_FUNCTOR(GreaterOf, >)
WEFT_COMPARE_FUNCTOR(GreaterEqualOf, >=)
#undef WEFT_COMPARE_FUNCTOR

#define WEFT_UNARY_FUNCTOR(name, expression) \
  struct name {                              \
    static constexpr char kName[] = #name;   \
    template <typename T>                    \
    WEFT_INLINE T Apply(T x) {               \
      using A = Arithmetic<T>;               \
      const A a = static_cast<A>(x);         \
      return static_cast<T>(expression);     \
    }                                        \
  };
WEFT_UNARY_FUNCTOR(NegOf, -a)
WEFT_UNARY_FUNCTOR(SquareOf, a* a)
#undef WEFT_UNARY_FUNCTOR

struct ReciprocalOf {
  static constexpr char kName[] = "ReciprocalOf";
  template <typename T>
  WEFT_INLINE T Apply(T x) {
    return static_cast<T>(Wide<T>(1) / static_cast<Wide<T>>(x));
  }
};
struct AbsOf {
  static constexpr char kName[] = "AbsOf";
  template <typename T>
  WEFT_INLINE T Apply(T x) {
    if constexpr (kIsInteger<T>) {
      return static_cast<T>(x < 0 ? Arithmetic<T>(0) - static_cast<Arithmetic<T>>(x) : x);
    } else {
      return static_cast<T>(std::abs(static_cast<Wide<T>>(x)));
    }
  }
};
struct SqrtOf {
  static constexpr char kName[] = "SqrtOf";
  template <typename T>
  WEFT_INLINE T Apply(T x) {
    return static_cast<T>(std::sqrt(static_cast<Wide<T>>(x)));
  }
};
struct RsqrtOf {
  static constexpr char kName[] = "RsqrtOf";
  template <typename T>
  WEFT_INLINE T Apply(T x) {
    return static_cast<T>(Wide<T>(1) / std::sqrt(static_cast<Wide<T>>(x)));
  }
};
// Conversions of numbers that have vector code.
inline constexpr char kCastToFloat[] = "CastToFloat";
inline constexpr char kCastToHalf[] = "CastToHalf";
inline constexpr char kCastToBfloat16[] = "CastToBfloat16";
template <typename To>
struct CastTo {
  template <typename T>
  WEFT_INLINE To Apply(T x) {
    return static_cast<To>(static_cast<Wide<To>>(static_cast<Wide<T>>(x)));
  }
};

}  // namespace weft::ops
