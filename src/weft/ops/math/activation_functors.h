// SPDX-License-Identifier: Apache-2.0
// What activations and their gradients compute from one element, or from a pair. NaN stays NaN.
#pragma once

#include <cmath>

#include "weft/ops/math/functors.h"

namespace weft::ops {

#define WEFT_ACTIVATION(name, expression)  \
  struct name {                            \
    static constexpr char kName[] = #name; \
    template <typename T>                  \
    WEFT_INLINE T Apply(T element) {       \
      using W = Wide<T>;                   \
      const W x = static_cast<W>(element); \
      return static_cast<T>(expression);   \
    }                                      \
  };
// g is what comes from above, x the input, or the output where that is what the gradient needs.
#define WEFT_ACTIVATION_GRAD(name, expression) \
  struct name {                                \
    static constexpr char kName[] = #name;     \
    template <typename T>                      \
    WEFT_INLINE T Apply(T gradient, T at) {    \
      using W = Wide<T>;                       \
      const W g = static_cast<W>(gradient);    \
      const W x = static_cast<W>(at);          \
      return static_cast<T>(expression);       \
    }                                          \
  };

inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

// Past these, log(exp(x) + 1) is x, or exp(x), to the last bit.
// log(epsilon) + 2 of the type.
template <typename W>
inline constexpr W kSoftplusThreshold = sizeof(W) == 4 ? W(-13.942385) : W(-34.043653389117154);

template <typename W>
WEFT_INLINE W Softplus(W x) {
  if (x > -kSoftplusThreshold<W>) return x;
  const W e = std::exp(x);
  return x < kSoftplusThreshold<W> ? e : std::log1p(e);
}

WEFT_ACTIVATION(ReluOf, x < W(0) ? W(0) : x)
WEFT_ACTIVATION(Relu6Of, x < W(0) ? W(0) : (x > W(6) ? W(6) : x))
WEFT_ACTIVATION(EluOf, x < W(0) ? std::expm1(x) : x)
WEFT_ACTIVATION(SeluOf, x < W(0) ? W(kSeluScaleAlpha) * std::expm1(x) : W(kSeluScale) * x)
WEFT_ACTIVATION(SoftplusOf, Softplus<W>(x))
WEFT_ACTIVATION(SoftsignOf, x / (std::abs(x) + W(1)))

WEFT_ACTIVATION_GRAD(ReluGradOf, x > W(0) ? g : W(0))
WEFT_ACTIVATION_GRAD(Relu6GradOf, (x > W(0)) & (x < W(6)) ? g : W(0))
WEFT_ACTIVATION_GRAD(EluGradOf, x < W(0) ? (x + W(1)) * g : g)
WEFT_ACTIVATION_GRAD(SeluGradOf, x < W(0) ? g * (x + W(kSeluScaleAlpha)) : g * W(kSeluScale))
WEFT_ACTIVATION_GRAD(SoftplusGradOf, g / (std::exp(-x) + W(1)))
WEFT_ACTIVATION_GRAD(SoftsignGradOf, g / ((std::abs(x) + W(1)) * (std::abs(x) + W(1))))

#undef WEFT_ACTIVATION
#undef WEFT_ACTIVATION_GRAD

}  // namespace weft::ops
