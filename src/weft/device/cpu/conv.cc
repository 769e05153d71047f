// SPDX-License-Identifier: Apache-2.0
#include "weft/device/cpu/conv.h"

#include <type_traits>

#include "weft/device/cpu/depthwise.h"
#include "weft/device/cpu/math_mode.h"
#include "weft/device/cpu/narrow_conv.h"
#include "weft/device/cpu/patch_products.h"
#include "weft/device/cpu/winograd.h"

namespace weft {
namespace {

// Winograd's way rounds more than a sum of products does: `--math=exact` goes without.
bool MayTakeWinograd(const ConvShape& s) { return !UsesExactMath() && IsWinograd(s); }
bool MayTakeWinogradFilter(const ConvShape& s) { return !UsesExactMath() && IsWinogradFilter(s); }

}  // namespace

template <typename T>
bool ConvForward(const ConvShape& s, const T* input, const T* filter, T* output, WorkSharer share,
                 const PartFinisher* finish) {
  if constexpr (std::is_same_v<T, float>) {
    if (IsDepthwise(s)) return DepthwiseForward(s, input, filter, output, share, finish);
    if (IsNarrowConv(s)) return NarrowForward(s, input, filter, output, share, finish);
    if (MayTakeWinograd(s)) return WinogradForward(s, input, filter, output, share, finish);
  }
  return PatchesForward(s, input, filter, output, share, finish);
}

template <typename T>
bool ConvBackwardInput(const ConvShape& s, const T* filter, const T* output_gradient,
                       T* input_gradient, WorkSharer share) {
  if constexpr (std::is_same_v<T, float>) {
    if (IsDepthwise(s))
      return DepthwiseBackwardInput(s, filter, output_gradient, input_gradient, share);
    if (MayTakeWinograd(s)) {
      return WinogradBackwardInput(s, filter, output_gradient, input_gradient, share);
    }
  }
  return PatchesBackwardInput(s, filter, output_gradient, input_gradient, share);
}

template <typename T>
bool ConvBackwardFilter(const ConvShape& s, const T* input, const T* output_gradient,
                        T* filter_gradient, WorkSharer share) {
  if constexpr (std::is_same_v<T, float>) {
    if (IsDepthwise(s))
      return DepthwiseBackwardFilter(s, input, output_gradient, filter_gradient, share);
    if (IsNarrowConv(s))
      return NarrowBackwardFilter(s, input, output_gradient, filter_gradient, share);
    if (MayTakeWinogradFilter(s)) {
      return WinogradBackwardFilter(s, input, output_gradient, filter_gradient, share);
    }
  }
  return PatchesBackwardFilter(s, input, output_gradient, filter_gradient, share);
}

#define WEFT_CONVOLVE(T)                                                                    \
  template bool ConvForward<T>(const ConvShape&, const T*, const T*, T*, WorkSharer,        \
                               const PartFinisher*);                                        \
  template bool ConvBackwardInput<T>(const ConvShape&, const T*, const T*, T*, WorkSharer); \
  template bool ConvBackwardFilter<T>(const ConvShape&, const T*, const T*, T*, WorkSharer);
WEFT_CONVOLVE(float)
WEFT_CONVOLVE(double)
WEFT_CONVOLVE(int32_t)
#undef WEFT_CONVOLVE

}  // namespace weft
