// SPDX-License-Identifier: Apache-2.0
#include "weft/ops/state/gradient_sums_kernel.h"

namespace weft::ops::state {

void AddGradient(Tensor* sum, int64_t at, const Tensor& gradient, int64_t from, int64_t n) {
  VisitDType(sum->dtype(), RealFloats{}, [&]<typename T>() {
    T* const out = sum->data<T>() + at;
    const T* const in = gradient.data<T>() + from;
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(out[i] + in[i]);
  });
}

void DivideGradient(Tensor* sum, int64_t at, int64_t n, int64_t divisor) {
  VisitDType(sum->dtype(), RealFloats{}, [&]<typename T>() {
    T* const out = sum->data<T>() + at;
    const T by = static_cast<T>(static_cast<float>(divisor));
    for (int64_t i = 0; i < n; ++i) out[i] = static_cast<T>(out[i] / by);
  });
}

}  // namespace weft::ops::state
